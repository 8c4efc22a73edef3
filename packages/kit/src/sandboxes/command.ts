import type { ClientHttp2Stream } from "node:http2";
import {
  type CommandEnding,
  type CommandEvent,
  type CommandLine,
  type CommandResult,
  type FrameChannel,
  FrameReader,
  type LinkParameters,
  parseBoundedJson,
} from "@aenv/contract";
import type { TaskCommandOptions, TaskProcess } from "../definition/sandbox.ts";
import { bytesOf, failureFrom, lost } from "../link/link.ts";

export type RunParameters = LinkParameters<"/run">;
type Output = { readonly channel: Exclude<FrameChannel, "event">; readonly data: Uint8Array };

/** Output of a process that waits for its reader. */
const QUEUE_BYTES = 1_024 ** 2;
const END_MS = 10_000;

export function runParameters(
  sandbox: string,
  command: CommandLine,
  options: TaskCommandOptions,
  env: Readonly<Record<string, string>>,
): Omit<RunParameters, "has_input"> {
  const { cwd, user, timeoutMs } = options;
  const variables = { ...env, ...options.env };
  return {
    sandbox,
    command: typeof command === "string" ? command : [...command],
    ...(cwd !== undefined && { cwd }),
    ...(user !== undefined && { user }),
    ...(timeoutMs !== undefined && { timeout_ms: timeoutMs }),
    ...(Object.keys(variables).length > 0 && { env: variables }),
  };
}

/** The result of a command whose output is sent at its end. */
export async function resultOf(stream: ClientHttp2Stream, signal?: AbortSignal): Promise<CommandResult> {
  const kept: Record<Output["channel"], Uint8Array[]> = { stdout: [], stderr: [] };
  for await (const part of partsOf(stream, signal)) {
    if ("channel" in part) kept[part.channel].push(part.data);
    else if (part.type === "ended") return { ...endingOf(part), stdout: decode(kept.stdout), stderr: decode(kept.stderr) };
  }
  throw lost("the end of a command was not reported");
}

/** A command with streams, once it has started. */
export async function openProcess(
  stream: ClientHttp2Stream,
  send: (process: number, signal: string) => Promise<void>,
  signal?: AbortSignal,
): Promise<TaskProcess> {
  const outputs = { stdout: new OutputQueue(), stderr: new OutputQueue() };
  const started = Promise.withResolvers<{ readonly process: number; readonly pid: number }>();
  const exited = Promise.withResolvers<CommandEnding>();
  exited.promise.catch(() => {});
  const follow = async () => {
    for await (const part of partsOf(stream, signal)) {
      if ("channel" in part) await outputs[part.channel].push(part.data);
      else if (part.type === "started") started.resolve(part);
      else if (part.type === "ended") {
        for (const output of Object.values(outputs)) output.end();
        return exited.resolve(endingOf(part));
      }
    }
    throw lost("the end of a command was not reported");
  };
  follow().catch((error: unknown) => {
    started.reject(error);
    exited.reject(error);
    for (const output of Object.values(outputs)) output.end(error);
  });
  const { process: id, pid } = await started.promise;
  const close = async () => {
    for (const output of Object.values(outputs)) output.drop();
    const over = AbortSignal.timeout(END_MS);
    await send(id, "SIGKILL").catch(() => {});
    await Promise.race([exited.promise.catch(() => {}), new Promise((resolve) => over.addEventListener("abort", resolve))]);
    stream.close(process.getBuiltinModule("node:http2").constants.NGHTTP2_CANCEL);
  };
  return {
    pid,
    stdin: new WritableStream<Uint8Array>({
      write: (data) => new Promise((resolve, reject) => stream.write(data, (error) => (error ? reject(error) : resolve()))),
      close: () => void stream.end(),
      abort: () => void stream.end(),
    }),
    stdout: outputs.stdout.stream,
    stderr: outputs.stderr.stream,
    exited: exited.promise,
    signal: (name) => send(id, name),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function* partsOf(stream: ClientHttp2Stream, signal?: AbortSignal): AsyncGenerator<Output | CommandEvent> {
  const reader = new FrameReader();
  for await (const bytes of bytesOf(stream, signal)) {
    for (const { channel, data } of reader.push(bytes)) {
      if (channel !== "event") {
        yield { channel, data };
        continue;
      }
      const event = parseBoundedJson(Buffer.from(data).toString("utf8")) as CommandEvent;
      if (event.type === "failed") throw failureFrom(event.failure);
      yield event;
    }
  }
}

/** One output of a process. A reader that is slow stops the process, as a pipe does. */
class OutputQueue {
  readonly stream: ReadableStream<Uint8Array>;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #isOver = false;
  #wake: (() => void) | null = null;

  constructor() {
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#wake?.(),
        cancel: () => this.drop(),
      },
      { highWaterMark: QUEUE_BYTES, size: (chunk) => chunk.length },
    );
  }

  async push(data: Uint8Array): Promise<void> {
    if (this.#isOver) return;
    this.#controller.enqueue(data);
    while (!this.#isOver && (this.#controller.desiredSize ?? 0) <= 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Later output is dropped. */
  drop(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (error === undefined) this.#controller.close();
    else this.#controller.error(error);
  }
}

function endingOf(event: Extract<CommandEvent, { type: "ended" }>): CommandEnding {
  return {
    exitCode: event.exit_code,
    signal: event.signal,
    timedOut: event.timed_out,
    outOfMemory: event.out_of_memory,
    interruption: event.interruption,
    durationMs: event.duration_ms,
    droppedBytes: event.dropped_bytes,
  };
}

function decode(parts: readonly Uint8Array[]): string {
  return Buffer.concat(parts).toString("utf8");
}
