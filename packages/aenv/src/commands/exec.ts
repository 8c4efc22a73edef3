import { constants } from "node:os";
import { type CommandEnding, type CommandLine, type CommandOptions, InstanceSandbox, type SandboxProcess } from "@aenv/sdk";
import { type Command, InvalidArgumentError } from "commander";
import { examples } from "../options/examples.ts";
import { duration } from "../options/values.ts";
import { addPlatformOptions, openPlatform, type PlatformOptions, withServerHint } from "../platform/platform.ts";
import { CommandExit } from "../terminal/command-exit.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Output, Terminal, TerminalInput } from "../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: string;
  readonly timeout?: number;
  readonly tty?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .usage("[options] <instance> [--] [command...]")
    .description(
      "Runs a command in an instance's sandbox, with your input, and exits with its exit code. On a terminal the command gets a terminal too. Without a command it is a shell. One argument with spaces is run by sh. Ctrl-C goes to the command.",
    )
    .argument("<instance>", "the instance")
    .argument("[command...]", "the program and its arguments, or one text for the shell")
    .passThroughOptions()
    .option("-w, --cwd <folder>", "the working directory; a relative one begins at the sandbox's own")
    .option("-e, --env <name=value>", "a variable for the command; may be repeated", variable)
    .option("-u, --user <user>", "the user, by name or number, also user:group")
    .option("--timeout <duration>", "end the command after this time, such as 30s", duration)
    .option("--no-tty", "no terminal for the command, even if this is one")
    .option("--json", "wait for the end, and print the outputs and the exit code as JSON");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv exec my-env-abc234",
        "aenv exec my-env-abc234 -- pytest -q",
        "aenv exec my-env-abc234 'ls -la | wc -l'",
        "aenv exec my-env-abc234 -- tar c results > results.tar",
      ),
    )
    .action((id: string, words: string[], options: Options) => exec(id, words, options, terminal));
}

async function exec(id: string, words: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const { scheduler } = openPlatform(options, terminal);
  const sandbox = new InstanceSandbox(async () => ({ id, scheduler, control: scheduler.control }));
  const line = lineOf(words);
  const common: CommandOptions = {
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    ...(options.env !== undefined && { env: options.env }),
    ...(options.user !== undefined && { user: options.user }),
    ...(options.timeout !== undefined && { timeoutMs: options.timeout }),
  };
  const { input } = terminal;
  let ending: CommandEnding;
  try {
    if (options.json) {
      const result = await sandbox.exec(line, { ...common, signal: terminal.stopSignal() });
      createPrinter(terminal, true).json({ id, ...result });
      ending = result;
    } else {
      const isTerminal = options.tty !== false && input?.isTty === true && terminal.stdout.isTty;
      const started = await sandbox.spawn(line, { ...common, endsWithClient: true, ...(isTerminal && { terminal: input.size() }) });
      ending = await follow(started, terminal, isTerminal);
    }
  } catch (error) {
    throw withServerHint(error);
  }
  throw new CommandExit(codeOf(ending));
}

/** Connects the command with this terminal until it ends. */
async function follow(process: SandboxProcess, terminal: Terminal, isTerminal: boolean): Promise<CommandEnding> {
  const { input } = terminal;
  const interrupt = () => process.signal("SIGINT");
  let stopResizing = () => {};
  if (isTerminal && input !== undefined) {
    // From here on, keys such as Ctrl-C are sent to the command.
    input.setRaw(true);
    stopResizing = input.onResize(() => process.resize(input.size()));
  } else terminal.stopSignal().addEventListener("abort", interrupt);
  void sendInput(input, process);
  try {
    await Promise.all([print(process.stdout, terminal.stdout), print(process.stderr, terminal.stderr)]);
    return await process.exited;
  } finally {
    stopResizing();
    if (isTerminal) input?.setRaw(false);
    else terminal.stopSignal().removeEventListener("abort", interrupt);
    input?.close();
    await process.close();
  }
}

async function sendInput(input: TerminalInput | undefined, process: SandboxProcess): Promise<void> {
  const writer = process.stdin.getWriter();
  try {
    if (input !== undefined) for await (const part of input.chunks()) await writer.write(part);
    await writer.close();
  } catch {
    // The command has ended, or does not read its input any more.
  }
}

async function print(from: ReadableStream<Uint8Array>, to: Output): Promise<void> {
  const decoder = new TextDecoder();
  for await (const part of from) {
    if (to.writeBytes === undefined) to.write(decoder.decode(part, { stream: true }));
    else await to.writeBytes(part);
  }
}

function lineOf(all: readonly string[]): CommandLine {
  const words = all[0] === "--" ? all.slice(1) : all;
  const [only] = words;
  if (only === undefined) return "command -v bash > /dev/null && exec bash; exec sh";
  return words.length === 1 && /\s/.test(only) ? only : words;
}

/** As a shell does for a program that a signal ended. */
function codeOf({ exitCode, signal }: CommandEnding): number {
  return exitCode ?? 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

function variable(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Write it as NAME=value.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}
