import { environmentStatuses } from "@aenv/contract";
import type { Identity } from "@aenv/sdk";
import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { addFormatOption, type FormatOptions, printerFor } from "../options/format.ts";
import { integer } from "../options/values.ts";
import { addPlatformOptions, callServer, nextCommand, openPlatform, type PlatformOptions } from "../platform/platform.ts";
import { builtInNames } from "../project/benchmarks.ts";
import { statusText, table, timeText, truncate } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly limit: number;
  readonly offset: number;
  readonly name?: string;
  readonly tag?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Lists the published environments that you may see, newest versions first.")
    .option("-l, --limit <number>", "the maximum number of lines", integer(1, 1_000), 100)
    .option("-o, --offset <number>", "the number of lines to skip", integer(0, Number.MAX_SAFE_INTEGER), 0)
    .option("-n, --name <name>", "only this name")
    .option("-t, --tag <tag>", "only environments with this tag");
  addPlatformOptions(addFormatOption(command))
    .addHelpText("after", examples("aenv list", "aenv list --tag game --limit 20", "aenv list --name my-env --format json"))
    .action((options: Options) => list(options, terminal));
}

async function list(options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { hub, hubUrl, tokens } = openPlatform(options, terminal);
  const { limit, offset, name, tag } = options;
  const found = await callServer(terminal, `Asking ${hubUrl}`, () =>
    hub.list({ limit, offset, ...(name && { name }), ...(tag && { tag }) }),
  );
  printer.json(found);
  if (printer.isJson) return;
  const { colors } = printer.output;
  if (found.length === 0) {
    if (offset > 0) printer.print(`There are no more than ${offset}.`);
    else printer.print(`No environments that you may see. ${nextStep(await tokens.whoAmI().catch(() => null))}`);
    return;
  }
  const rows = found.map((one) => [
    colors.bold(one.name),
    one.version,
    statusText(environmentStatuses[one.status] ?? String(one.status), colors),
    String(one.visibility ?? ""),
    truncate(one.description, 60),
    timeText(one.created_at),
  ]);
  printer.print(table(["name", "version", "status", "seen by", "description", "created"], rows, printer.output, ["created"]));
  if (found.length < limit) {
    const others = builtInNames().filter((builtIn) => !found.some((one) => one.name === builtIn));
    if (offset === 0 && !name && !tag && others.length > 0)
      printer.print(colors.dim(`These come with AEnv too, and are published when a publisher first uses them: ${others.join(", ")}`));
    return;
  }
  const filters = `${name ? ` --name ${name}` : ""}${tag ? ` --tag ${tag}` : ""}`;
  const next = nextCommand(`aenv list --limit ${limit} --offset ${offset + limit}${filters}`, options, colors);
  printer.print(`${colors.dim("There may be more:")} ${next}`);
}

/** A trainer's token may not publish. */
function nextStep(identity: Identity | null): string {
  const mayPublish = identity === null || identity.roles.some((role) => role === "publisher" || role === "admin");
  const builtIn = `Those that come with AEnv are published when ${mayPublish ? "they are used" : "a publisher first uses them"}: ${builtInNames().join(", ")}`;
  if (mayPublish) return `Publish one with: aenv push\n${builtIn}`;
  return `The token of ${identity.owner} (${identity.roles.join(", ")}) may not publish; their publisher can show one to all: aenv env visibility NAME@VERSION public\n${builtIn}`;
}
