import type { Role } from "@aenv/sdk";
import { type Command, InvalidArgumentError, Option } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { collect } from "../../options/pairs.ts";
import { duration, integer } from "../../options/values.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { timeText } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { printToken } from "./print-token.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly owner: string;
  readonly role?: Role[];
  readonly scope?: string[];
  readonly note?: string;
  readonly expires?: number;
  readonly maxInstances?: number;
}

/** What each role may do. */
const roles: Readonly<Record<Role, string>> = {
  admin: "everything",
  publisher: "publish and use",
  trainer: "use",
  agent: "tools only",
};

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("create a token")
    .description("Creates a token and shows it once: the server stores only its hash.")
    .requiredOption("--owner <owner>", "the owner of the token and of everything that is created with it")
    .addOption(
      new Option(
        "-r, --role <role>",
        `${Object.entries(roles)
          .map(([role, does]) => `${role} (${does})`)
          .join(", ")}; may be repeated; publisher and trainer if not given`,
      ).argParser(role),
    )
    .option(
      "--scope <environment>",
      "an environment that it is valid for, or a prefix such as shop-*; may be repeated; all if not given",
      collect,
    )
    .option("--note <text>", "what it is for")
    .option("--expires <duration>", "how long it is valid, e.g. 90d; forever if not given", duration)
    .option("--max-instances <number>", "the maximum number of live instances of its owner", integer(1, 10_000_000));
  addPlatformOptions(addOutputOption(command))
    .addHelpText(
      "after",
      examples("aenv token create --owner ada", "aenv token create --owner ci --role publisher --expires 90d --note 'nightly push'"),
    )
    .action((options: Options) => create(options, terminal));
}

function role(text: string, known: readonly Role[] = []): Role[] {
  if (!Object.hasOwn(roles, text)) throw new InvalidArgumentError(`Allowed are ${Object.keys(roles).join(", ")}.`);
  return [...known, text as Role];
}

async function create(options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { tokens, url } = openPlatform(options, terminal);
  const { owner, role: given, scope: scopes, note, expires, maxInstances } = options;
  const made = await callServer(terminal, `Asking ${url}`, () =>
    tokens.create({
      owner,
      ...(given && { roles: given }),
      ...(scopes && { scopes }),
      ...(note && { note }),
      ...(expires && { expiresAt: new Date(Date.now() + expires) }),
      ...(maxInstances && { maxInstances }),
    }),
  );
  printer.json(made);
  if (printer.isJson) return;
  printToken(
    made.token,
    [
      ["Id", made.id],
      ["Owner", made.owner],
      ["Roles", made.roles.join(", ")],
      ["Scopes", made.scopes.join(", ")],
      ["Expires", made.expiresAt === null ? "never" : timeText(made.expiresAt)],
    ],
    printer,
  );
}
