import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { table, timeText } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly owner?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("list tokens, without their secrets")
    .description("Lists the server's tokens, without their secrets, and when each was last used.")
    .option("--owner <owner>", "only tokens of this owner");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv token list", "aenv token list --owner ada --json"))
    .action((options: Options) => list(options, terminal));
}

async function list(options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { tokens, url } = openPlatform(options, terminal);
  const found = await callServer(terminal, `Asking ${url}`, () => tokens.list(options.owner ? { owner: options.owner } : {}));
  printer.json(found);
  if (printer.isJson) return;
  if (found.length === 0) {
    printer.print("No tokens. Create one with: aenv token create --owner NAME");
    return;
  }
  const { colors } = printer.output;
  const rows = found.map((one) => [
    colors.bold(one.id),
    one.owner,
    one.roles.join(", "),
    one.scopes.join(", "),
    one.maxInstanceCount === null ? "" : String(one.maxInstanceCount),
    one.note,
    timeText(one.createdAt),
    one.expiresAt === null ? "never" : timeText(one.expiresAt),
    one.lastUsedAt === null ? "never" : timeText(one.lastUsedAt),
  ]);
  printer.print(
    table(["id", "owner", "roles", "scopes", "max instances", "note", "created", "expires", "last used"], rows, printer.output, [
      "created",
    ]),
  );
}
