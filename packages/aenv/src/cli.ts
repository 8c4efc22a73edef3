import { Command, CommanderError, Help } from "commander";
import { examples } from "./options/examples.ts";
import { ownPackage } from "./project/own-package.ts";
import { CommandExit } from "./terminal/command-exit.ts";
import { exitCodes } from "./terminal/exit-codes.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** A file of `commands/`. It adds arguments, options, examples and the action to the command that it is named after. */
interface CommandModule {
  define(command: Command, terminal: Terminal): void;
}

/** Only the command that is used is loaded, so that start-up stays fast. */
const commands: Readonly<Record<string, { summary: string; alias?: string; isHidden?: boolean; load: () => Promise<CommandModule> }>> = {
  init: { summary: "create a new environment project", load: () => import("./commands/init.ts") },
  run: { summary: "serve the environment of this folder, and reload it on every change", load: () => import("./commands/run.ts") },
  test: { summary: "check what every environment owes, and run its own tests", load: () => import("./commands/test.ts") },
  call: { summary: "call a tool, function or reward of a running environment", load: () => import("./commands/call.ts") },
  rollout: { summary: "play an agent against an environment's tasks, and score it", load: () => import("./commands/rollout.ts") },
  runs: { summary: "list, show and compare runs", load: () => import("./commands/runs/index.ts") },
  replay: { summary: "play the trajectories of a run again, and compare", load: () => import("./commands/replay.ts") },
  rescore: { summary: "score the trajectories of a run with another version", load: () => import("./commands/rescore.ts") },
  reproduce: { summary: "play a run again, or say what has changed since", load: () => import("./commands/reproduce.ts") },
  tasks: { summary: "show the pass rates of tasks", load: () => import("./commands/tasks/index.ts") },
  export: { summary: "write the trajectories of a run as training data", load: () => import("./commands/export.ts") },
  trainer: { summary: "play episodes for a trainer that hands them out or takes them", load: () => import("./commands/trainer/index.ts") },
  build: { summary: "bundle the environment into one archive, or build its image", load: () => import("./commands/build.ts") },
  image: { summary: "load images into a server's store", load: () => import("./commands/image/index.ts") },
  server: { summary: "start the platform: hub, instances and gateway", alias: "up", load: () => import("./commands/server.ts") },
  status: { summary: "show what a server does, for administrators", load: () => import("./commands/status.ts") },
  backup: { summary: "back up a server's data while it runs", load: () => import("./commands/backup.ts") },
  restore: { summary: "restore a backup into an empty home", load: () => import("./commands/restore.ts") },
  push: { summary: "publish the environment of this folder", load: () => import("./commands/push.ts") },
  pull: { summary: "download a published environment", load: () => import("./commands/pull.ts") },
  list: { summary: "list published environments", load: () => import("./commands/list.ts") },
  get: { summary: "show a published environment", load: () => import("./commands/get.ts") },
  env: { summary: "manage published environments", load: () => import("./commands/env/index.ts") },
  instance: { summary: "start and manage instances", load: () => import("./commands/instance/index.ts") },
  exec: { summary: "run a command or a shell in an instance's sandbox", load: () => import("./commands/exec.ts") },
  cp: { summary: "copy files to or from an instance's sandbox", load: () => import("./commands/cp.ts") },
  instances: { summary: "the same as: instance list", isHidden: true, load: () => import("./commands/instance/list.ts") },
  bench: { summary: "evaluate agents and answers on benchmarks", load: () => import("./commands/bench/index.ts") },
  import: { summary: "make an environment of tasks in another format", load: () => import("./commands/import/index.ts") },
  mount: { summary: "make an environment of an MCP server or an agent", load: () => import("./commands/mount/index.ts") },
  snapshot: { summary: "store instances, and start others from them", load: () => import("./commands/snapshot/index.ts") },
  service: { summary: "run replicas of an environment behind one address", load: () => import("./commands/service/index.ts") },
  token: { summary: "create and revoke a server's tokens", load: () => import("./commands/token/index.ts") },
  login: { summary: "store a server's address and token", load: () => import("./commands/login.ts") },
  config: { summary: "show and change the settings of this command", load: () => import("./commands/config/index.ts") },
  doctor: { summary: "show which engines and tools work on this machine", load: () => import("./commands/doctor.ts") },
  version: { summary: "print the version", load: () => import("./commands/version.ts") },
};

export const commandNames = Object.keys(commands);

/** Runs one command line and returns the exit code. */
export async function runCli(argv: readonly string[], terminal: Terminal): Promise<number> {
  let program: Command | undefined;
  try {
    program = await createProgram(argv, terminal);
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync([...argv], { from: "user" });
    return exitCodes.ok.code;
  } catch (error) {
    if (error instanceof CommandExit) return error.code;
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.ok.code;
    // Loaded only after an error, so that help is printed quickly.
    const { reportFailure } = await import("./terminal/report-failure.ts");
    return reportFailure(error, { argv, command: namedCommand(argv, program), terminal });
  }
}

/** The command that a command line names, with its group: `instance list`. */
function namedCommand(argv: readonly string[], program: Command | undefined): string | undefined {
  const at = argv.findIndex((word) => Object.hasOwn(commands, word));
  if (at < 0) return undefined;
  const group = program?.commands.find((one) => one.name() === argv[at]);
  const sub = group?.commands.find((one) => one.name() === argv[at + 1] || one.aliases().includes(argv[at + 1] ?? ""));
  return sub === undefined ? argv[at] : `${argv[at]} ${sub.name()}`;
}

/** The program with the command that the command line names loaded. The others have only their name and summary. */
export async function createProgram(argv: readonly string[], terminal: Terminal): Promise<Command> {
  const named = argv.filter((word) => !word.startsWith("-")).slice(0, 2);
  const wanted = named[0] === "help" ? named[1] : named[0];
  return assemble(terminal, (name, alias) => wanted !== undefined && (wanted === name || wanted === alias));
}

/** The program with every command loaded, for the reference pages. */
export function loadProgram(terminal: Terminal): Promise<Command> {
  return assemble(terminal, () => true);
}

async function assemble(terminal: Terminal, isWanted: (name: string, alias: string | undefined) => boolean): Promise<Command> {
  const program = styled(new Command("aenv"), terminal)
    .description("Write, serve and use environments for agents and reinforcement learning.")
    .usage("COMMAND [options]")
    // Options after a command belong to that command: `init --version 2.0.0` does not print our version.
    .enablePositionalOptions()
    .version(ownPackage().version, "-V, --version", "print the version")
    .option("-v, --verbose", "print more, and the stack of an unexpected error")
    .option("--debug", "the same as --verbose")
    .helpOption("-h, --help", "print help; also after a command: aenv run --help")
    .helpCommand("help [command]", "print help for a command")
    .addHelpText("after", `${examples("aenv init my-env", "aenv rollout .", "aenv run", "aenv call add n=3")}\n${exitCodeTable()}`);
  for (const [name, { summary, alias, isHidden = false, load }] of Object.entries(commands)) {
    const command = program.command(name, { hidden: isHidden }).summary(summary).helpOption("-h, --help", "print this help");
    if (alias !== undefined) command.alias(alias);
    if (isWanted(name, alias)) {
      command.option("--verbose", "print more, and the stack of an unexpected error");
      (await load()).define(command, terminal);
    }
  }
  return program;
}

/** Commander writes to our outputs, and throws instead of exiting. Subcommands inherit both. */
function styled(program: Command, terminal: Terminal): Command {
  return program
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      // `runCli` prints errors.
      writeErr: () => undefined,
      getOutHelpWidth: () => Math.min(terminal.stdout.columns, 110),
      getOutHasColors: () => terminal.stdout.colors.isColorSupported,
    })
    .configureHelp({
      ...longTermsApart,
      styleTitle: (title) => terminal.stdout.colors.bold(title),
      styleCommandText: (text) => terminal.stdout.colors.cyan(text),
      styleSubcommandText: (text) => terminal.stdout.colors.cyan(text),
      styleOptionText: (text) => terminal.stdout.colors.cyan(text),
      styleArgumentText: (text) => terminal.stdout.colors.cyan(text),
    });
}

/** What descriptions get at least of the width: a longer option has a line of its own. */
const DESCRIPTION_WIDTH = 40;

const longTermsApart: Partial<Help> = {
  padWidth(command, helper) {
    const most = (helper.helpWidth ?? 80) - DESCRIPTION_WIDTH - 4;
    return Math.min(Help.prototype.padWidth.call(helper, command, helper), most);
  },
  formatItem(term, termWidth, description, helper) {
    const format = (shown: string) => Help.prototype.formatItem.call(helper, shown, termWidth, description, helper);
    return description === "" || helper.displayWidth(term) <= termWidth ? format(term) : `  ${term}\n${format("")}`;
  },
};

function exitCodeTable(): string {
  return ["Exit codes:", ...Object.values(exitCodes).map(({ code, meaning }) => `  ${String(code).padEnd(4)}${meaning}`)].join("\n");
}
