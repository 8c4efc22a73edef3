import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { PlatformError, untilAborted } from "@aenv/contract";
import { SYSTEM_PATH } from "../../host/launcher.ts";
import type { DevicePolicy } from "../layer-tar.ts";
import { parseAnswer, refusal } from "./answers.ts";
import type { UnpackLimits } from "./limits.ts";
import { MAX_LINE_BYTES, MAX_MESSAGE, type UnpackAnswer, type UnpackRequest, type UnpackSettings } from "./messages.ts";

export interface UnpackerOptions {
  /** The image's name, for errors. */
  readonly image: string;
  readonly limits: UnpackLimits;
  readonly devices?: DevicePolicy;
  readonly signal: AbortSignal;
}

/** In the published package, this file is part of a chunk, in the folder of the program. */
const PROGRAM = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./program.ts" : "./unpack.js", import.meta.url));

/** Unpacks the layers of one image in a process of its own, which starts with the first layer and ends with this object. */
export class Unpacker implements AsyncDisposable {
  readonly #options: UnpackerOptions;
  #process: Promise<UnpackProcess> | null = null;

  constructor(options: UnpackerOptions) {
    this.#options = options;
  }

  /** Unpacks the blob of a layer into an empty folder. If it fails, nobody writes to the folder any more. */
  async unpack(request: UnpackRequest): Promise<void> {
    const { signal, image } = this.#options;
    try {
      signal.throwIfAborted();
      this.#process ??= startProcess(this.#options);
      const { ask } = await this.#process;
      const answer = await untilAborted(ask(request), signal);
      if (answer.kind !== "done") throw refusal(image, request.diffId, answer);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#process?.catch(() => null))?.end();
  }
}

interface UnpackProcess {
  ask(request: UnpackRequest): Promise<UnpackAnswer>;
  /** Kills it and what it has started, and waits until they are gone. */
  end(): Promise<void>;
}

async function startProcess({ limits, devices }: UnpackerOptions): Promise<UnpackProcess> {
  const settings: UnpackSettings = { limits, ...(devices !== undefined && { devices }) };
  const child = await spawnProgram([process.execPath, `--max-old-space-size=${limits.heapMb}`, PROGRAM, JSON.stringify(settings)]);
  const { stdin, stdout, stderr } = child as ChildProcess & { stdin: NodeJS.WritableStream; stdout: Readable; stderr: Readable };
  // tar has standard error too, so this is the end of both.
  const closed = new Promise<number | string | null>((resolve) => child.once("close", (code, signal) => resolve(code ?? signal)));
  // A process that has ended is reported by the answer that is missing.
  stdin.on("error", () => undefined);
  let problems = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    problems = (problems + text).slice(0, 4 * MAX_MESSAGE);
  });
  const lines = linesOf(stdout);
  return {
    ask: async (request) => {
      stdin.write(`${JSON.stringify(request)}\n`);
      const { value: line } = await lines.next();
      if (line !== undefined) return parseAnswer(line);
      // It may have written too much.
      kill(child);
      return endOf(await closed, problems, limits);
    },
    end: async () => {
      kill(child);
      stdout.destroy();
      await closed;
    },
  };
}

/** Without a network, if this machine has the program that does that. */
async function spawnProgram(command: readonly string[]): Promise<ChildProcess> {
  const options = { cwd: "/", env: { PATH: SYSTEM_PATH }, detached: true, stdio: "pipe" } as const;
  for (const [program = "", ...args] of [["unshare", "--net", "--", ...command], command]) {
    const child = spawn(program, args, options);
    try {
      await once(child, "spawn");
      return child;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new PlatformError("sandbox.unsupported", `${command[0]} could not be started to unpack an image: it is not there any more`);
}

function kill({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    // Its group, with tar.
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended, and tar with it: its input is closed.
  }
}

async function* linesOf(output: Readable): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const chunk of output.setEncoding("utf8")) {
    rest += chunk;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      yield rest.slice(0, end);
      rest = rest.slice(end + 1);
    }
    if (rest.length > MAX_LINE_BYTES) return;
  }
}

function endOf(how: number | string | null, problems: string, { heapMb }: UnpackLimits): UnpackAnswer {
  if (problems.includes("heap out of memory"))
    return { kind: "error", code: "bundle.invalid", message: `the process that unpacks it needs more than ${heapMb} MiB of memory` };
  const reason = problems.trim().split("\n").at(-1)?.slice(0, MAX_MESSAGE);
  return { kind: "error", code: null, message: `the process that unpacks it ended with ${how}${reason ? `: ${reason}` : ""}` };
}
