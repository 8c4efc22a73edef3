import { type CommandEnding, commandRoutes, fillPath, messageOf, parseBoundedJson, ReadLimitExceeded } from "@aenv/contract";
import { NetworkError } from "../errors/errors.ts";
import { commandError } from "./command-error.ts";
import { readEnding } from "./ending.ts";
import type { SandboxTarget } from "./target.ts";

type Message = Readonly<Record<string, unknown>>;

/** A command that runs in a sandbox. It goes on if the connection is lost, unless it was started with `endsWithClient`. */
export interface SandboxProcess extends AsyncDisposable {
  /** The number that `attach` takes. */
  readonly id: number;
  readonly pid: number;
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves when the command has ended and all its output was received. */
  readonly exited: Promise<CommandEnding>;
  /** Changes the size of its terminal. */
  resize(size: { readonly rows: number; readonly cols: number }): void;
  /** Sends a signal, such as SIGINT, to all processes of its group. */
  signal(name: string): void;
  /** Disconnects. */
  close(): Promise<void>;
}

/** Opens the WebSocket, sends the first message, and waits until the command has started. */
export async function openProcess(target: SandboxTarget, first: object, signal?: AbortSignal): Promise<SandboxProcess> {
  signal?.throwIfAborted();
  const { id, control } = target;
  const url = control.urlOf(fillPath(commandRoutes.terminal, { id })).replace(/^http/, "ws");
  // Node's WebSocket takes headers; a browser's does not, and needs none without access control.
  const socket = new WebSocket(url, { headers: { ...control.headers } } as unknown as string[]);
  socket.binaryType = "arraybuffer";
  const started = Promise.withResolvers<{ id: number; pid: number }>();
  const exited = Promise.withResolvers<CommandEnding>();
  const closed = Promise.withResolvers<void>();
  exited.promise.catch(() => {});
  const outputs = [output(), output()] as const;
  let isOpen = false;

  const fail = (error: unknown) => {
    started.reject(error);
    exited.reject(error);
    for (const { end } of outputs) end(error);
  };
  socket.onopen = () => {
    isOpen = true;
    socket.send(JSON.stringify(first));
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") {
      const bytes = new Uint8Array(data as ArrayBuffer);
      try {
        outputs[bytes[0] === 2 ? 1 : 0].push(bytes.subarray(1));
      } catch (error) {
        fail(
          new NetworkError(`the output of the command in instance '${id}' that was not read is lost: ${messageOf(error)}`, {
            cause: error,
          }),
        );
        socket.close();
      }
      return;
    }
    const message = parseBoundedJson(data) as Message;
    if (message.type === "started") started.resolve({ id: Number(message.process), pid: Number(message.pid) });
    else if (message.type === "error") fail(commandError(message, id));
    else if (message.type === "exit") {
      for (const { end } of outputs) end();
      exited.resolve(readEnding(message));
    }
  };
  socket.onclose = () => {
    closed.resolve();
    if (isOpen || signal?.aborted)
      fail(signal?.aborted ? signal.reason : new NetworkError(`the connection to the command in instance '${id}' was lost`));
    // A WebSocket does not tell why it was refused; a request does.
    else
      target.scheduler
        .getInstance(id, { signal })
        .then(() => fail(new NetworkError(`could not open a WebSocket to instance '${id}' at ${url}`)), fail);
  };
  socket.onerror = () => {};
  const abort = () => socket.close();
  signal?.addEventListener("abort", abort);
  closed.promise.then(() => signal?.removeEventListener("abort", abort));

  const close = async () => {
    socket.close();
    await closed.promise;
  };
  const say = (message: object) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  return {
    ...(await started.promise),
    stdin: new WritableStream<Uint8Array>({
      write: (data) => sendInput(socket, data),
      close: () => say({ type: "end" }),
    }),
    stdout: outputs[0].stream,
    stderr: outputs[1].stream,
    exited: exited.promise,
    resize: ({ rows, cols }) => say({ type: "resize", rows, cols }),
    signal: (name) => say({ type: "signal", signal: name }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Size of a message, which is below the server's limit. */
const CHUNK_BYTES = 256 * 1_024;
const MAX_BUFFERED_BYTES = 1_024 ** 2;
const PAUSE_MS = 5;

/** A WebSocket has no event for the end of a write, so its buffer is watched. */
async function sendInput(socket: WebSocket, data: Uint8Array): Promise<void> {
  for (let at = 0; at < data.length; at += CHUNK_BYTES) {
    if (socket.readyState !== WebSocket.OPEN) throw new NetworkError("the connection to the command is closed");
    socket.send(new Uint8Array(data.subarray(at, at + CHUNK_BYTES)));
    while (socket.bufferedAmount > MAX_BUFFERED_BYTES) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** A WebSocket cannot be paused, so output that nobody reads is kept in memory. */
const MAX_UNREAD_BYTES = 256 * 1_024 ** 2;

function output() {
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let isOver = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      start: (own) => {
        controller = own;
      },
      cancel: () => {
        isOver = true;
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_UNREAD_BYTES }),
  );
  return {
    stream,
    push: (data: Uint8Array) => {
      if (isOver) return;
      controller.enqueue(data);
      if ((controller.desiredSize ?? 0) < 0) throw new ReadLimitExceeded("bytes", MAX_UNREAD_BYTES);
    },
    end: (error?: unknown) => {
      if (isOver) return;
      isOver = true;
      if (error === undefined) controller.close();
      else controller.error(error);
    },
  };
}
