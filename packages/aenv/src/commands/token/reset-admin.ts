import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addStoreOptions, readStoreConfig, type StoreOptions } from "../../server/store-options.ts";
import { withSpinner } from "../../terminal/spinner.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { printToken } from "./print-token.ts";

interface Options extends StoreOptions, FormatOptions {
  readonly owner: string;
  readonly revokeOthers?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("create a new administrator token, if the old one is lost")
    .description(
      "Creates a new administrator token in the server's store and shows it once. It needs no token, but write access to the store: run it on the server's machine, as the server's user. The server may be running or stopped.",
    );
  addStoreOptions(command)
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
  const { resetAdmin } = await import("@aenv/server");
  const { owner, revokeOthers: revokesOthers = false } = options;
  const config = await readStoreConfig(options, terminal);
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
