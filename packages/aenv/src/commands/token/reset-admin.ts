import { resolve } from "node:path";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { withSpinner } from "../../terminal/spinner.ts";
import { facts } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends FormatOptions {
  readonly home?: string;
  readonly store?: string;
  readonly config?: string;
  readonly owner: string;
  readonly revokeOthers?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("make a new administrator's token, for a lost one")
    .description(
      "Makes a new administrator's token in the server's store and shows it, this once. It needs no token but write access to the store: run it on the server's machine, as the server's user. The server may be running or stopped.",
    )
    .option("--home <folder>", "the server's home [$AENV_HOME]")
    .option("--store <url>", "the server's store, if it is not below its home [$AENV_STORE]")
    .option("-c, --config <file>", "the server's config file, if it has one")
    .option("--owner <owner>", "whose the token is", "admin")
    .option("--revoke-others", "also revoke all other administrators' tokens, as when one was stolen");
  addOutputOption(command)
    .addHelpText(
      "after",
      examples(
        "aenv token reset-admin",
        "aenv token reset-admin --home /srv/aenv --revoke-others",
        "aenv token reset-admin --store redis://localhost:6379",
      ),
    )
    .action((options: Options) => reset(options, terminal));
}

async function reset(options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  // The server is loaded only now: the other commands of this group do without it.
  const { readServerConfig, resetAdmin } = await import("@aenv/server");
  const { home, store, config: file, owner, revokeOthers: revokesOthers = false } = options;
  const config = readServerConfig({
    flags: { ...(home !== undefined && { home: resolve(terminal.cwd, home) }), store },
    variables: terminal.env,
    ...(file !== undefined && { file: resolve(terminal.cwd, file) }),
  });
  const made = await withSpinner(terminal, "Making a token", () => resetAdmin(config, { owner, revokesOthers }));
  printer.json(made);
  if (printer.isJson) return;
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(made.token)}`);
  printer.print();
  printer.print(
    facts(
      [
        ["Id", made.id],
        ["Owner", made.owner],
        ["Roles", "admin"],
        ["Revoked", made.revoked.join(", ")],
      ],
      printer.output,
    ),
  );
  printer.print();
  printer.print(colors.dim("It is shown this once. Keep it with: aenv login, or give it as AENV_API_KEY."));
}
