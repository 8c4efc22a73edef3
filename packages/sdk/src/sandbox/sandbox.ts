import {
  boundedLines,
  type CommandEnding,
  type CommandLine,
  type CommandResult,
  commandResultAnswer,
  commandRoutes,
  listedCommandAnswer,
  parseBoundedJson,
} from "@aenv/contract";
import * as z from "zod";
import { EnvironmentError, ValidationError } from "../errors/errors.ts";
import { MAX_ANSWER_BYTES } from "../http/http.ts";
import { readAnswer } from "../http/read-answer.ts";
import { requestTo } from "../platform/control-client.ts";
import { commandError } from "./command-error.ts";
import { readEnding, toEnding } from "./ending.ts";
import { SandboxFiles } from "./files.ts";
import { type OnConnection, openListener, type SandboxListener } from "./listen.ts";
import { openProcess, type SandboxProcess } from "./process.ts";
import type { SandboxTarget } from "./target.ts";

export interface CommandOptions {
  /** The command is ended after this time; the server has a limit of its own. */
  readonly timeoutMs?: number;
  /** A relative path begins at the sandbox's own working directory. */
  readonly cwd?: string;
  /** In addition to the sandbox's own variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Name or number, also `name:group`. */
  readonly user?: string;
}

export interface ExecOptions extends CommandOptions {
  readonly stdin?: string | Uint8Array;
  /** Called with each part of the output while the command runs. */
  readonly onOutput?: (text: string, channel: "stdout" | "stderr") => void;
  /** Most bytes of each output without `onOutput`; of more, the beginning and the end are returned. 1 MiB if absent. */
  readonly maxOutputBytes?: number;
  /** Aborting ends the command. */
  readonly signal?: AbortSignal;
}

export interface SpawnOptions extends CommandOptions {
  /** Gives the command a terminal of this size; then all output is in `stdout`. */
  readonly terminal?: { readonly rows: number; readonly cols: number };
  /** End the command when this client disconnects. Without it, the command goes on, and `attach` follows it again. */
  readonly endsWithClient?: boolean;
  readonly signal?: AbortSignal;
}

/** A command that was started before. */
export interface ListedCommand {
  readonly id: number;
  readonly pid: number;
  readonly argv: readonly string[];
  readonly startedAt: string;
  /** Null while it runs. */
  readonly ending: CommandEnding | null;
}

/**
 * The sandbox of an instance: commands, files and ports. Only for instances with a sandbox of their own on an AEnv platform.
 *
 * @example
 * const { exitCode, stdout } = await env.sandbox.exec("pytest -q", { timeoutMs: 60_000 });
 */
export class InstanceSandbox {
  readonly files: SandboxFiles;
  readonly #open: (signal?: AbortSignal) => Promise<SandboxTarget>;

  constructor(open: (signal?: AbortSignal) => Promise<SandboxTarget>) {
    this.#open = open;
    this.files = new SandboxFiles(open);
  }

  /** Runs a command to its end. A command that fails gives an exit code; only one that could not be started throws. */
  async exec(command: CommandLine, options: ExecOptions = {}): Promise<CommandResult> {
    const { stdin, onOutput, maxOutputBytes, signal } = options;
    const { id, control } = await this.#open(signal);
    const call = {
      ...requestTo(commandRoutes.exec, { id }),
      doing: `run a command in instance '${id}'`,
      headers: { "content-type": "application/json" },
      // A command may print nothing for hours.
      idleTimeoutMs: null,
      signal,
      stream: () =>
        oneChunk({
          ...commandBody(command, options),
          ...(typeof stdin === "string" && { stdin }),
          ...(stdin instanceof Uint8Array && { stdin_base64: toBase64(stdin) }),
          ...(onOutput === undefined && { wait: true, max_output_bytes: maxOutputBytes }),
          end_with_client: signal !== undefined,
        }),
    } as const;
    if (onOutput === undefined) {
      const { stdout, stderr, ...ending } = readAnswer(commandResultAnswer, await control.upload(call), "the result of a command");
      return { ...toEnding(ending), stdout, stderr };
    }
    const answer = await control.open(call);
    const output = { stdout: "", stderr: "" };
    for await (const event of eventsOf(answer.chunks())) {
      if (event.type === "exit") return { ...readEnding(event), ...output };
      if (event.type === "error") throw commandError(event, id);
      if (event.type !== "stdout" && event.type !== "stderr") continue;
      const text = String(event.data);
      output[event.type] += text;
      onOutput(text, event.type);
    }
    throw new EnvironmentError(`the connection to instance '${id}' ended before its command did`, { code: "network.failed" });
  }

  /** Starts a command with streams: input while it runs, and a terminal if you want one. */
  async spawn(command: CommandLine, options: SpawnOptions = {}): Promise<SandboxProcess> {
    const { terminal: pty, endsWithClient, signal } = options;
    const start = { type: "start", ...commandBody(command, options), ...(pty && { pty }), end_with_client: endsWithClient ?? false };
    return openProcess(await this.#open(signal), start, signal);
  }

  /** Follows a command that was started before: the output that no client has taken, and its end. */
  async attach(process: number, { signal }: { readonly signal?: AbortSignal } = {}): Promise<SandboxProcess> {
    return openProcess(await this.#open(signal), { type: "attach", process }, signal);
  }

  /** The commands that run, and those whose end no client has read. */
  async commands(options: { readonly signal?: AbortSignal } = {}): Promise<ListedCommand[]> {
    const { id, control } = await this.#open(options.signal);
    const request = requestTo(commandRoutes.listCommands, { id });
    const rows = await control.send({ ...options, ...request, doing: `list the commands of instance '${id}'` });
    return readAnswer(z.array(listedCommandAnswer), rows, "the list of commands").map(({ process, pid, argv, started_at, ended }) => ({
      id: process,
      pid,
      argv,
      startedAt: started_at,
      ending: ended && toEnding(ended),
    }));
  }

  /** Sends a signal to all processes of a command's group. */
  async signal(process: number, name: string): Promise<void> {
    const { id, control } = await this.#open();
    const request = requestTo(commandRoutes.signalCommand, { id, command: String(process) });
    const doing = `send ${name} to command ${process} of instance '${id}'`;
    await control.send({ ...request, doing, notFound: "command.not_found", body: { signal: name } });
  }

  /**
   * Listens on a port inside the sandbox, 0 for any that is free, and gets the connections of its programs: the other direction of `port`.
   * So a program in a sandbox without a network reaches what you connect it to, and nothing else. Needs Node.
   *
   * @example
   * await using listener = await env.sandbox.listen(0, (connection) => connection.pipe(connect(8000)).pipe(connection));
   */
  async listen(port: number, onConnection: OnConnection, { signal }: { readonly signal?: AbortSignal } = {}): Promise<SandboxListener> {
    return openListener(await this.#open(signal), port, onConnection, signal);
  }

  /** A link to a port on which a program in the sandbox listens, for HTTP and WebSocket. It works without a token until it expires. */
  async port(port: number, { minutes, signal }: { readonly minutes?: number; readonly signal?: AbortSignal } = {}): Promise<string> {
    const { id, scheduler } = await this.#open(signal);
    return scheduler.presignUrl(id, port, { signal, ...(minutes !== undefined && { minutes }) });
  }
}

function commandBody(command: CommandLine, { timeoutMs, cwd, env, user }: CommandOptions): object {
  if (command.length === 0) throw new ValidationError("a command needs a text or a program");
  return { command, timeout_ms: timeoutMs, cwd, env, user };
}

async function* oneChunk(body: object): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(JSON.stringify(body));
}

async function* eventsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Record<string, unknown>> {
  for await (const line of boundedLines(chunks, { maxLineLength: MAX_ANSWER_BYTES }))
    if (line !== "") yield parseBoundedJson(line) as Record<string, unknown>;
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
