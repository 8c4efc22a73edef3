import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("revoke a token")
    .description("Revokes a token: it is no longer valid. Other servers on the same store notice within seconds.")
    .argument("<id>", "the token's id, as `aenv token list` shows it")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv token revoke 0123456789ab"))
    .action((id: string, options: Options) => revoke(id, options, terminal));
}

async function revoke(given: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  // The whole token is accepted instead of its id.
  const id = /^aenv_([0-9a-f]{12})_/.exec(given)?.[1] ?? given;
  const { tokens } = openPlatform(options, terminal);
  await callServer(terminal, `Revoking ${id}`, () => tokens.revoke(id));
  printer.json({ id, revoked: true });
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} token ${colors.bold(id)} is revoked`);
}
