import { type KeyObject, sign } from "node:crypto";
import { createConnection, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { boundedLines, type CommandEnding, messageOf, PlatformError } from "@aenv/contract";
import type { SandboxAddress } from "../engine/engine.ts";
import { IncomingBytes, StreamDuplex } from "./bytes.ts";
import { InitFiles, type SendRequest } from "./files.ts";
import { encodeFrame, type Frame, FrameDecoder, frameKind } from "./frame.ts";
import { fieldsOf, listIn, numberIn, optionalNumberIn, parseFields, textIn } from "./json.ts";
import {
  endingOf,
  type ProcessOutput,
  ProcessOutputs,
  RemoteProcess,
  type SpawnOptions,
  spawnParameters,
  type TerminalSize,
} from "./process.ts";
import { InitStream } from "./stream.ts";

const protocol = 1;
/** How long an init may take to close its side of a connection. */
const END_MS = 1_000;
/** Data waits when so much was sent that the init has not read. */
const MAX_UNSENT_BYTES = 1 << 20;
/** Streams of one connection, as in the init. Connections of programs to a port that a client listens on count too. */
const MAX_STREAMS = 1_024;
/** A line that names a connection. */
const MAX_LINE = 32;
const signedPrefix = "aenv-init-1\n";

export interface InitHello {
  /** Version of the program in the sandbox, which may be older than this client. */
  readonly init: string;
  /** The requests that it knows. */
  readonly abilities: readonly string[];
  /** How often the sandbox was restored from a snapshot. */
  readonly generation: number;
}

/** How a launcher starts a program. */
export interface LaunchOptions {
  /** The parameters of `mount_root`: this root is mounted first. */
  readonly root?: object | undefined;
  /** The program is on a read-only mount that nobody else sees. */
  readonly ownMounts?: boolean;
  /** A folder that is empty for the program; only with `ownMounts`. */
  readonly hidden?: string;
  /** The program and its children have room for this many descriptors from the beginning. */
  readonly descriptors?: number;
}

export interface InitStats {
  readonly load: number;
  readonly processes: number;
  readonly runnable: number;
  /** CPU time of the processes that live now. */
  readonly cpuMs: number;
  readonly memoryKb: number;
  /** Time since the last request or data of a client; 0 while a process is runnable. */
  readonly idleMs: number;
  readonly oomKills: number;
  /** How often a process could not be started because of the limit; 0 if that is not known. */
  readonly processLimitHits: number;
  /** Where the files of the sandbox are; null if that is not known. */
  readonly diskFreeKb: number | null;
  /** Open files of the process with the most, if they are more than half of the limit; else 0. */
  readonly openFiles: number;
  readonly openFilesLimit: number | null;
}

export interface RestoreReport {
  readonly generation: number;
  /** Each is `reseeded`, `mixed`, `set`, `kept`, or why it was not possible. */
  readonly randomness: string;
  readonly hostname: string;
  readonly clock: string;
}

export interface ListedProcess {
  readonly id: number;
  readonly pid: number;
  readonly argv: readonly string[];
  readonly startedMs: number;
  /** Whether it is the program of the sandbox, and not a command in it; null from an init that does not say so. */
  readonly isMain: boolean | null;
  /** Null while it runs. */
  readonly ending: CommandEnding | null;
}

/** A port of the sandbox's loopback interface on which the init listens for this client. */
export interface ListeningPort {
  readonly port: number;
  /** Resolves when nobody listens any more. */
  readonly closed: Promise<void>;
  /** Closes the port and all its connections. */
  close(): void;
}

/** Connects to the init of a sandbox, and proves with the private key to be a server of the platform. */
export async function connectInit(address: SandboxAddress, key: KeyObject, signal: AbortSignal): Promise<InitConnection> {
  signal.throwIfAborted();
  const socket = createConnection(address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port });
  return openConnection(socket, key, signal);
}

/** The same on a connection that exists. */
export async function openConnection(socket: Socket, key: KeyObject, signal: AbortSignal): Promise<InitConnection> {
  const abort = () => socket.destroy(signal.reason instanceof Error ? signal.reason : new Error("cancelled"));
  signal.addEventListener("abort", abort);
  try {
    return new InitConnection(socket, await authenticate(socket, key));
  } catch (error) {
    socket.destroy();
    if (error instanceof PlatformError) throw error;
    throw new PlatformError("sandbox.lost", `cannot connect to the sandbox's init: ${messageOf(error)}`, { cause: error });
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Answers the challenge. The socket is paused afterwards; the init sends nothing more without a request. */
async function authenticate(socket: Socket, key: KeyObject): Promise<InitHello> {
  socket.setNoDelay(true).on("error", () => undefined); // reported by the iterator
  const frames = receivedFrames(socket);
  const hello = await nextFields(frames);
  if (numberIn(hello, "protocol") !== protocol) {
    throw new PlatformError("sandbox.unsupported", `the sandbox's init speaks protocol ${hello.protocol}; this server speaks ${protocol}`);
  }
  const challenge = Buffer.from(textIn(hello, "challenge"), "base64");
  const signature = sign(null, Buffer.concat([Buffer.from(`${signedPrefix}${addressOf(socket)}\n`), challenge]), key);
  socket.write(encodeFrame(frameKind.request, 0, Buffer.from(JSON.stringify({ signature: signature.toString("base64") }))));
  const { result, error } = await nextFields(frames);
  await frames.return(); // stops reading from the socket, so that the connection can
  if (error !== undefined) {
    throw new PlatformError("sandbox.lost", `the sandbox's init refused the connection: ${textIn(fieldsOf(error), "message")}`);
  }
  return {
    init: textIn(hello, "init"),
    abilities: listIn(hello, "abilities").map(String),
    generation: numberIn(fieldsOf(result), "generation"),
  };
}

/** What this process has connected to. It is signed: a signature that one sandbox received is of no use at another. */
function addressOf({ remoteAddress, remotePort, remoteFamily }: Socket): string {
  if (remoteAddress === undefined) return "unix";
  return remoteFamily === "IPv6" ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

async function* receivedFrames(socket: Socket): AsyncGenerator<Frame, void, undefined> {
  const decoder = new FrameDecoder();
  for await (const received of socket.iterator({ destroyOnReturn: false })) yield* decoder.push(received);
}

async function nextFields(frames: AsyncGenerator<Frame, void, undefined>) {
  const next = await frames.next();
  if (next.done) throw new Error("it closed the connection");
  return parseFields(next.value.payload);
}

/** One connection to the init of a sandbox, shared by all requests. */
export class InitConnection {
  readonly hello: InitHello;
  readonly files: InitFiles;
  /** Resolves when the connection is closed or lost. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #streams = new Map<number, InitStream>();
  #nextStream = 1;

  constructor(socket: Socket, hello: InitHello) {
    this.hello = hello;
    this.#socket = socket;
    this.files = new InitFiles(this.#send);
    const decoder = new FrameDecoder();
    socket.on("data", (received: Buffer) => {
      try {
        for (const frame of decoder.push(received)) this.#accept(frame);
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.on("drain", () => {
      for (const stream of this.#streams.values()) stream.flush();
    });
    let cause: Error | undefined;
    socket.on("error", (error) => {
      cause = error;
    });
    this.closed = new Promise((resolve) => {
      socket.on("close", () => {
        const lost = new PlatformError("sandbox.lost", "the connection to the sandbox's init was closed", { cause });
        for (const stream of this.#streams.values()) stream.fail(lost);
        resolve();
      });
    });
  }

  /** Starts a process. */
  spawn(options: SpawnOptions): Promise<RemoteProcess> {
    return this.#follow("spawn", spawnParameters(options));
  }

  /** Starts a program of the machine. Only a launcher knows this request, and the next one. */
  launch(options: SpawnOptions, { root, ownMounts, hidden, descriptors }: LaunchOptions): Promise<RemoteProcess> {
    return this.#follow("launch", { ...spawnParameters(options), root, own_mounts: ownMounts, hidden, descriptors });
  }

  /** Mounts the root of a sandbox, or gives a sandbox another one. */
  async mount(request: "mount_root" | "restack_root", parameters: object, abort: AbortSignal): Promise<void> {
    await this.#send(request, { ...parameters, abort }).stream.answer;
  }

  /**
   * Starts the program of the image; unless `keep`, the sandbox ends with it. With `inheritOutput`, it writes to the output of the
   * init, such as the log of a container, and no output is in the streams. With `oneOutput`, its standard error is its standard output, so that
   * a log keeps the order of lines.
   */
  startMain({
    inheritOutput,
    oneOutput,
    ...options
  }: SpawnOptions & { readonly keep?: boolean; readonly inheritOutput?: boolean; readonly oneOutput?: boolean }): Promise<RemoteProcess> {
    return this.#follow("main", { ...spawnParameters(options), inherit_output: inheritOutput, one_output: oneOutput });
  }

  /** Finds a process again: its output that was not taken yet, and its end. Another client that is attached loses it. */
  attach(process: number): Promise<RemoteProcess> {
    return this.#follow("attach", { process });
  }

  /** Runs a command to its end. Aborting kills its group. */
  async run({ abort, ...options }: SpawnOptions & { readonly abort?: AbortSignal }): Promise<ProcessOutput> {
    abort?.throwIfAborted();
    const started = await this.spawn(options);
    const kill = () => void this.signal(started.id, "SIGKILL", { group: true }).catch(() => undefined);
    abort?.addEventListener("abort", kill);
    try {
      if (abort?.aborted) kill();
      const output = await started.output();
      abort?.throwIfAborted();
      return output;
    } finally {
      abort?.removeEventListener("abort", kill);
    }
  }

  /** Sends a signal to a process, or with `group` to all of its group. */
  async signal(process: number, signal: NodeJS.Signals, { group = false } = {}): Promise<void> {
    await this.#send("signal", { process, signal, group }).stream.answer;
  }

  async resize(process: number, { rows, cols }: TerminalSize): Promise<void> {
    await this.#send("resize", { process, rows, cols }).stream.answer;
  }

  /** Processes that were started by a request: those that run, and those whose end no client has read. */
  async listProcesses(): Promise<readonly ListedProcess[]> {
    const answer = fieldsOf(await this.#send("list_processes", {}).stream.answer);
    return listIn(answer, "processes").map((row) => {
      const fields = fieldsOf(row);
      return {
        id: numberIn(fields, "process"),
        pid: numberIn(fields, "pid"),
        argv: listIn(fields, "argv").map(String),
        startedMs: numberIn(fields, "started_ms"),
        isMain: typeof fields.main === "boolean" ? fields.main : null,
        ending: fields.ending === null ? null : endingOf(fieldsOf(fields.ending)),
      };
    });
  }

  /** Connects to a port of the sandbox's loopback interface. */
  async connect(port: number): Promise<Duplex> {
    const { stream, receiver } = this.#send("connect", { port }, (on) => new StreamDuplex(on));
    await stream.answer;
    return receiver;
  }

  /** Listens on a port of the sandbox's loopback interface, 0 for any that is free, and hands over the connections of its programs. */
  async listen(port: number, onConnection: (connection: Duplex) => void): Promise<ListeningPort> {
    if (!this.hello.abilities.includes("listen")) {
      const message = "the sandbox was started by an earlier version of the platform, which cannot listen on its ports";
      throw new PlatformError("sandbox.unsupported", `${message}; create a new instance`);
    }
    const { stream, receiver } = this.#send("listen", { port }, (on) => new IncomingBytes(on, true));
    const listening = numberIn(fieldsOf(await stream.answer), "port");
    const follow = async () => {
      for await (const line of boundedLines(receiver, { maxLineLength: MAX_LINE })) this.#take(Number(line), onConnection);
    };
    return { port: listening, closed: follow().catch(() => undefined), close: () => receiver.destroy() };
  }

  async stats(abort?: AbortSignal): Promise<InitStats> {
    const fields = fieldsOf(await this.#send("stats", { abort }).stream.answer);
    return {
      load: numberIn(fields, "load"),
      processes: numberIn(fields, "processes"),
      runnable: numberIn(fields, "runnable"),
      cpuMs: numberIn(fields, "cpu_ms"),
      memoryKb: numberIn(fields, "memory_kb"),
      idleMs: numberIn(fields, "idle_ms"),
      oomKills: numberIn(fields, "oom_kills"),
      // Sandboxes of an earlier version have an init that does not report these.
      processLimitHits: optionalNumberIn(fields, "process_limit_hits") ?? 0,
      diskFreeKb: optionalNumberIn(fields, "disk_free_kb"),
      openFiles: optionalNumberIn(fields, "open_files") ?? 0,
      openFilesLimit: optionalNumberIn(fields, "open_files_limit"),
    };
  }

  /** To be called once after a restore, before anything else: the copy gets its own randomness, name and time. */
  async restored(options: { readonly entropy: Buffer; readonly hostname?: string; readonly nowMs?: number }): Promise<RestoreReport> {
    const { entropy, hostname, nowMs } = options;
    const request = this.#send("restored", { entropy: entropy.toString("base64"), hostname, now_ms: nowMs });
    const fields = fieldsOf(await request.stream.answer);
    return {
      generation: numberIn(fields, "generation"),
      randomness: textIn(fields, "randomness"),
      hostname: textIn(fields, "hostname"),
      clock: textIn(fields, "clock"),
    };
  }

  /** Ends all processes, with SIGKILL those that are left after the grace, and then the init. Resolves when the init has begun. */
  async shutdown({ graceMs }: { readonly graceMs?: number } = {}): Promise<void> {
    await this.#send("shutdown", { grace_ms: graceMs }).stream.answer;
  }

  /**
   * Closes the connection when everything that the init has sent was received: output that a process writes from now on is for the next client. An
   * init that does not answer, such as that of a frozen sandbox, is not awaited for long.
   */
  async end(): Promise<void> {
    this.#socket.end();
    const giveUp = setTimeout(() => this.#socket.destroy(), END_MS);
    await this.closed;
    clearTimeout(giveUp);
  }

  /** Closes the connection at once. Processes go on. */
  async close(): Promise<void> {
    this.#socket.destroy();
    await this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #take(connection: number, onConnection: (connection: Duplex) => void): void {
    // The init refuses it too, unless a program of the sandbox has taken it over.
    if (this.#streams.size >= MAX_STREAMS) return;
    const { stream, receiver } = this.#send("take", { connection }, (on) => new StreamDuplex(on));
    stream.answer.then(
      () => onConnection(receiver),
      // It was closed meanwhile.
      () => undefined,
    );
  }

  async #follow(name: string, parameters: object): Promise<RemoteProcess> {
    const { stream, receiver } = this.#send(name, parameters, (on) => new ProcessOutputs(on));
    return new RemoteProcess(await stream.answer, stream, receiver);
  }

  readonly #send: SendRequest = (name, options, receive) => {
    const { abort, ...parameters }: { readonly abort?: AbortSignal } = options;
    const id = this.#nextStream++;
    const cancel = () => stream.reset(abort?.reason instanceof Error ? abort.reason : new Error("cancelled"));
    const stream = new InitStream({
      id,
      // What is still received after `end` is not acknowledged.
      send: (kind, payload) => {
        if (this.#socket.writable) this.#socket.write(encodeFrame(kind, id, payload));
      },
      isCongested: () => this.#socket.writableLength > MAX_UNSENT_BYTES,
      onClose: () => {
        this.#streams.delete(id);
        abort?.removeEventListener("abort", cancel);
      },
    });
    const receiver = receive?.(stream);
    if (receiver !== undefined) stream.receiveWith(receiver);
    if (this.#socket.destroyed) stream.fail(new PlatformError("sandbox.lost", "the connection to the sandbox's init is closed"));
    else {
      this.#streams.set(id, stream);
      stream.request(name, parameters);
      abort?.addEventListener("abort", cancel);
      if (abort?.aborted) cancel();
    }
    return { stream, receiver: receiver as Exclude<typeof receiver, undefined> };
  };

  #accept(frame: Frame): void {
    if (frame.stream === 0) throw new PlatformError("sandbox.lost", `the sandbox's init ended the connection: ${frame.payload}`);
    // Undefined if it was given up here, and the init did not know yet.
    this.#streams.get(frame.stream)?.accept(frame);
  }
}
