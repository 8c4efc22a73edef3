import { pipeline } from "node:stream/promises";
import { type CommandEvent, PlatformError } from "@aenv/contract";
import { endAnswer } from "../link/content.ts";
import { writeEvent, writeFrame } from "../link/frames.ts";
import { ANSWERED, type LinkRequest } from "../link/link-request.ts";
import { finished, outputOf } from "../sandboxes/command-output.ts";
import { endingFields } from "../sandboxes/ending-fields.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { fromInit } from "../sandboxes/init-failure.ts";
import { OpenCounts } from "../sandboxes/open-counts.ts";
import { type HandlerOptions, inSandbox } from "./in-sandbox.ts";

export interface CommandRequestsOptions extends HandlerOptions {
  /** The longest time of a command, and the default. */
  readonly commandTimeoutMs: number;
  /** Commands in one sandbox at a time. */
  readonly commandsAtOnce: number;
}

const NONE: ReadonlySet<number> = new Set();

/** The longest time of a timer. */
const NEVER_MS = 2 ** 31 - 1;

/** Answers requests that run commands in sandboxes. */
export class CommandRequests {
  readonly #options: CommandRequestsOptions;
  /** How many commands run or are being started, by sandbox. */
  readonly #running = new OpenCounts();
  /** The commands that run, by sandbox. */
  readonly #processes = new Map<string, Set<number>>();

  constructor(options: CommandRequestsOptions) {
    this.#options = options;
  }

  /** The commands of the environment that run in a sandbox. */
  ownCommands(sandboxId: string): ReadonlySet<number> {
    return this.#processes.get(sandboxId) ?? NONE;
  }

  /** A command ends with its request, so none is left when the environment or the connection is gone. */
  async run(call: LinkRequest<"/run">): Promise<unknown> {
    const { sandbox: id } = call.given;
    const { sandboxes, commandsAtOnce } = this.#options;
    using _ = this.#running.open(id, commandsAtOnce, (count) => {
      return new PlatformError("quota.exceeded", `${count} commands run in the sandbox, the server's limit (commandsPerInstance)`);
    });
    return await inSandbox(call, sandboxes, (sandbox) => this.#follow(call, sandbox));
  }

  async #follow(call: LinkRequest<"/run">, sandbox: OpenSandbox): Promise<unknown> {
    const { given, stream, signal } = call;
    const { commandTimeoutMs, holdAnswer, failureOf } = this.#options;
    const { defaults, init, path } = sandbox;
    const user = given.user ?? defaults.user;
    const process = await init.spawn({
      argv: typeof given.command === "string" ? ["sh", "-c", given.command] : given.command,
      cwd: given.cwd === undefined ? defaults.cwd : path(given.cwd),
      env: { ...defaults.env, ...given.env },
      stdin: given.has_input,
      deadlineMs: Math.min(given.timeout_ms ?? commandTimeoutMs, commandTimeoutMs),
      ...(user !== undefined && { user }),
      ...(given.terminal !== undefined && { pty: given.terminal }),
    });
    const mine = this.#processes.get(given.sandbox) ?? new Set();
    this.#processes.set(given.sandbox, mine.add(process.id));
    const kill = () => void init.signal(process.id, "SIGKILL", { group: true }).catch(() => {});
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    // The input may end before the command, or after it: its exit is what counts.
    if (given.has_input) pipeline(stream, process.stdin, { signal }).catch(() => {});
    else stream.resume();
    stream.respond({ ":status": 200 });
    // A command that runs may wait for its reader for as long as it may run.
    const write = (channel: "stdout" | "stderr", data: Uint8Array) => writeFrame(stream, channel, data, commandTimeoutMs);
    const tell = (event: CommandEvent) => writeEvent(stream, event, commandTimeoutMs);
    try {
      await tell({ type: "started", process: process.id, pid: process.pid });
      if (given.max_output_bytes === undefined) {
        for await (const part of outputOf(process, NEVER_MS)) {
          if (part === null) continue;
          if ("channel" in part) await write(part.channel, part.data);
          else await tell({ type: "ended", ...endingFields(part) });
        }
      } else {
        const onKept = holdAnswer(call);
        const { stdout, stderr, process: _, ...ending } = await finished(process, given.max_output_bytes, onKept);
        if (signal.aborted) throw signal.reason;
        await write("stdout", stdout);
        await write("stderr", stderr);
        await tell({ type: "ended", ...endingFields(ending) });
      }
    } catch (error) {
      if (!stream.destroyed) await tell({ type: "failed", failure: failureOf(fromInit(error)) });
    } finally {
      signal.removeEventListener("abort", kill);
      if (signal.aborted) kill();
      mine.delete(process.id);
      if (mine.size === 0) this.#processes.delete(given.sandbox);
      endAnswer(stream, commandTimeoutMs);
    }
    return ANSWERED;
  }
}
