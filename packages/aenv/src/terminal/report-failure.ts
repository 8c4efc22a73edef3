import { CommanderError } from "commander";
import { exitCodes } from "./exit-codes.ts";
import { Failure, failureAsJson, toFailure } from "./failure.ts";
import { failureText } from "./failure-text.ts";
import type { Terminal } from "./terminal.ts";

interface Situation {
  readonly argv: readonly string[];
  readonly command: string | undefined;
  readonly terminal: Terminal;
}

/** Prints a failure as text and, if JSON was requested, as JSON. Returns the exit code. */
export function reportFailure(error: unknown, { argv, command, terminal }: Situation): number {
  const failure = error instanceof CommanderError ? usageFailure(error, command) : toFailure(error);
  const { code } = exitCodes[failure.exit];
  if (failure.problems.length === 0) return code;
  // After a command, -v may be an option of that command.
  const isVerbose = argv[0] === "-v" || argv.includes("--verbose") || argv.includes("--debug");
  if (wantsJson(argv)) terminal.stdout.write(`${JSON.stringify(failureAsJson(failure))}\n`);
  terminal.stderr.write(`${failureText(failure, terminal.stderr.colors, terminal.cwd, isVerbose)}\n`);
  return code;
}

/** `--json`, or `json` as the value of a format option. */
function wantsJson(argv: readonly string[]): boolean {
  const words = argv.join(" ");
  return argv.includes("--json") || /(?:^| )(?:-o ?|-f ?|--output[ =]|--format[ =])json(?: |$)/.test(words);
}

/** What is meant by an option of another command or tool, where the most similar name would mislead. */
const meant: Readonly<Record<string, string>> = {
  "server --port": "The server has two ports: --control-port and --data-port.",
  "call --host": "The address of what is called: --url http://HOST:PORT",
};
const SERVER_HINT = "The address of the server: --system-url http://HOST:8080";

/** Commander's error with our hint. */
function usageFailure(error: CommanderError, command: string | undefined): Failure {
  const help = `See: aenv ${command === undefined ? "" : `${command} `}--help`;
  if (error.code === "commander.help") return new Failure(`'aenv ${command}' needs one of its commands`, { exit: "usage", hint: help });
  const [first = "", similar] = error.message.replace(/^error: /, "").split("\n");
  const [, option] = /^unknown option '(--[\w-]+)/.exec(first) ?? [];
  const suggestion = option === undefined ? similar : (meant[`${command} ${option}`] ?? (option === "--url" ? SERVER_HINT : similar));
  return new Failure(first, { exit: "usage", hint: suggestion === undefined ? help : `${suggestion.replace(/[()]/g, "")}  ${help}` });
}
