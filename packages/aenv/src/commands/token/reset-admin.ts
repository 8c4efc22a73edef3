import { resolve } from "node:path";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { withSpinner } from "../../terminal/spinner.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { printToken } from "./print-token.ts";

interface Options extends FormatOptions {
  readonly home?: string;
  readonly store?: string;
  readonly config?: string;
  readonly owner: string;
  readonly revokeOthers?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("create a new administrator token, if the old one is lost")
    .description(
      "Creates a new administrator token in the server's store and shows it once. It needs no token, but write access to the store: run it on the server's machine, as the server's user. The server may be running or stopped.",
    )
    .option("--home <folder>", "the server's home folder [$AENV_HOME]")
    .option("--store <url>", "the server's store, if it is not below its home [$AENV_STORE]")
    .option("-c, --config <file>", "the server's config file, if it has one")
    .option("--owner <owner>", "the owner of the token", "admin")
    .option("--revoke-others", "also revoke all other administrator tokens, for example if one was stolen");
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
  // Loaded only here: the other commands of this group do not need the server.
  const { readServerConfig, resetAdmin } = await import("@aenv/server");
  const { home, store, config: file, owner, revokeOthers: revokesOthers = false } = options;
  const config = readServerConfig({
    flags: { ...(home !== undefined && { home: resolve(terminal.cwd, home) }), store },
    variables: terminal.env,
    ...(file !== undefined && { file: resolve(terminal.cwd, file) }),
  });
  const made = await withSpinner(terminal, "Creating a token", () => resetAdmin(config, { owner, revokesOthers }));
  printer.json(made);
  if (printer.isJson) return;
  printToken(
    made.token,
    [
      ["Id", made.id],
      ["Owner", made.owner],
      ["Roles", "admin"],
      ["Revoked", made.revoked.join(", ")],
    ],
    printer,
  );
}
