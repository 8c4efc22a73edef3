import { isPlatformError, PlatformError, parseBoundedJson, problemsOf } from "@aenv/contract";
import type { RawData, WebSocket } from "ws";
import { z } from "zod";
import type { Caller } from "../access/access.ts";
import { answerPings } from "../http/pings.ts";
import { outputOf } from "../sandboxes/command-output.ts";
import { endingFields } from "../sandboxes/ending-fields.ts";
import { commandFields } from "./command-fields.ts";
import type { Commands, FollowedCommand } from "./commands.ts";

const size = { rows: z.int().min(1).max(10_000), cols: z.int().min(1).max(10_000) };

/** The first message. All later output is binary: one byte for the channel, 1 or 2, and the data. */
const first = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("start"),
    ...commandFields,
    pty: z.strictObject(size).optional(),
    end_with_client: z.boolean().default(false),
  }),
  z.strictObject({ type: z.literal("attach"), process: z.int().min(1) }),
]);

/** Later messages. Input is binary. */
const later = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("resize"), ...size }),
  z.strictObject({ type: z.literal("signal"), signal: z.string().regex(/^SIG[A-Z0-9]+$/, "must be a name such as SIGTERM") }),
  z.strictObject({ type: z.literal("end") }),
]);

const FIRST_MS = 30_000;
const PING_MS = 30_000;
const MAX_WAITING = 16;
const channels = { stdout: 1, stderr: 2 } as const;

/** Commands over WebSockets: with input while they run, and with a terminal if the client asks for one. */
export class Terminals {
  readonly #commands: Commands;
  readonly #open = new Set<WebSocket>();

  constructor(commands: Commands) {
    this.#commands = commands;
  }

  /** Serves a WebSocket until it ends. A command goes on after it, unless the client asked otherwise. */
  async serve(socket: WebSocket, id: string, caller: Caller): Promise<void> {
    this.#open.add(socket);
    answerPings(socket);
    const gone = new AbortController();
    const onGone = () => gone.abort(new PlatformError("request.cancelled", "the client disconnected"));
    socket.once("close", onGone).on("error", onGone);
    const inbox = new Inbox(socket);
    let command: FollowedCommand | null = null;
    try {
      const message = parse(first, await inbox.first(gone.signal));
      command =
        message.type === "attach"
          ? await this.#commands.attach(id, message.process, caller, gone.signal)
          : await this.#commands.start(id, { ...message, timeoutMs: message.timeout_ms, hasInput: true }, caller, gone.signal);
      const leave = message.type === "start" && message.end_with_client ? command.kill : command.detach;
      gone.signal.addEventListener("abort", leave);
      if (gone.signal.aborted) leave();
      takeInput(inbox, socket, command);
      await sendOutput(socket, command);
      socket.close(1000);
    } catch (error) {
      if (!gone.signal.aborted) refuse(socket, error);
      command?.detach();
    } finally {
      this.#open.delete(socket);
    }
  }

  /** Disconnects the clients; their commands go on. */
  close(): void {
    for (const socket of this.#open) socket.close(1001, "the server is shutting down");
  }
}

async function sendOutput(socket: WebSocket, { process }: FollowedCommand): Promise<void> {
  await send(socket, JSON.stringify({ type: "started", process: process.id, pid: process.pid }));
  for await (const part of outputOf(process, PING_MS)) {
    if (part === null) socket.ping();
    else if ("channel" in part) await send(socket, Buffer.concat([Buffer.of(channels[part.channel]), part.data]));
    else await send(socket, JSON.stringify({ type: "exit", process: process.id, ...endingFields(part) }));
  }
}

/** Resolves when the client has taken enough that more may be read from the command. */
function send(socket: WebSocket, data: string | Buffer): Promise<void> {
  return new Promise((resolve, reject) => socket.send(data, (error) => (error ? reject(error) : resolve())));
}

/** The messages of a client, which may send input before its command has started. */
class Inbox {
  readonly #socket: WebSocket;
  readonly #waiting: [RawData, boolean][] = [];
  #take: ((data: RawData, isBinary: boolean) => void) | null = null;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data, isBinary) => {
      if (this.#take !== null) return this.#take(data, isBinary);
      // What a client sends while it cannot be taken stays with the client, beyond a few messages.
      if (this.#waiting.push([data, isBinary]) >= MAX_WAITING) socket.pause();
    });
  }

  /** The next message; those after it wait. */
  async first(signal: AbortSignal): Promise<RawData> {
    const message = Promise.withResolvers<RawData>();
    const giveUp = () => message.reject(signal.aborted ? signal.reason : new PlatformError("request.too_slow", "no first message arrived"));
    const timer = setTimeout(giveUp, FIRST_MS);
    signal.addEventListener("abort", giveUp);
    this.take((data) => {
      this.#take = null;
      message.resolve(data);
    });
    try {
      return await message.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** From now on messages wait, until the next `take`. */
  hold(): void {
    this.#take = null;
  }

  /** Takes the messages that wait, and all later ones. */
  take(take: (data: RawData, isBinary: boolean) => void): void {
    this.#take = take;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#take === null ? undefined : this.#waiting.shift())
      take(...next);
    if (this.#take !== null) this.#socket.resume();
  }
}

function takeInput(inbox: Inbox, socket: WebSocket, command: FollowedCommand): void {
  const { process, init } = command;
  inbox.take((data, isBinary) => {
    if (isBinary) {
      if (process.stdin.write(data as Buffer)) return;
      socket.pause();
      process.stdin.once("drain", () => socket.resume());
      return;
    }
    try {
      const message = parse(later, data);
      if (message.type === "end") process.stdin.end();
      // A command that has ended meanwhile is reported by its exit.
      else if (message.type === "resize") {
        // What comes after it is typed in a terminal of the new size.
        inbox.hold();
        socket.pause();
        const takeRest = () => {
          socket.resume();
          takeInput(inbox, socket, command);
        };
        void init.resize(process.id, message).then(takeRest, takeRest);
      } else void init.signal(process.id, message.signal as NodeJS.Signals, { group: true }).catch(() => {});
    } catch (error) {
      refuse(socket, error);
    }
  });
}

function parse<T extends z.ZodType>(schema: T, data: RawData): z.infer<T> {
  let value: unknown;
  try {
    value = parseBoundedJson(data.toString());
  } catch {
    throw new PlatformError("request.invalid", "a text message must be JSON; input for the command is binary");
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new PlatformError("request.invalid", `Invalid message: ${problemsOf(parsed.error, "the message")}`);
}

function refuse(socket: WebSocket, error: unknown): void {
  const { code, message, retryable } =
    isPlatformError(error) && error.code !== "internal" ? error : new PlatformError("internal", "an internal error; see the server's log");
  socket.send(JSON.stringify({ type: "error", code, message, retryable }));
  socket.close(1008);
}
