import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { boundedChunks, isObject, parseBoundedJson, readBoundedText, SseDecoder } from "@aenv/contract";
import type { Part } from "../definition/agent.ts";
import { NotSent, type OutgoingPolicy, sendRequest } from "../outgoing/request.ts";
import { type AgentInterface, type RemoteCard, readCard } from "./card.ts";
import { isOver, type RemoteEvent, type RemoteTask, readEvent, readTask, writePart } from "./events.ts";

/** What is sent to an agent. */
export interface OutgoingMessage {
  readonly parts: readonly Part[];
  readonly contextId: string | null;
  readonly taskId: string | null;
}

/** The agent has refused a request; `name` is the error of A2A. */
export class A2aError extends Error {
  override readonly name: string;

  constructor(name: string, message: string) {
    super(`${name}: ${message}`);
    this.name = name;
  }
}

/** The connection broke off, or was not what A2A describes. */
export class BrokenAnswer extends Error {
  override readonly name = "BrokenAnswer";
}

/** One answer, or one event of a stream. */
const MAX_EVENT_BYTES = 8 * 1_024 ** 2;
/** All events of one message. */
const MAX_STREAM_BYTES = 64 * 1_024 ** 2;
const MAX_EVENTS = 10_000;
const SENDS = 3;
/** Streams of one task without a new event. */
const SUBSCRIPTIONS = 5;
const POLL_MS = { first: 200, most: 5_000 };

type Operation = "send" | "stream" | "get" | "cancel" | "subscribe";

const METHODS: Readonly<Record<"1.0" | "0.3", Readonly<Record<Operation, string>>>> = {
  "1.0": { send: "SendMessage", stream: "SendStreamingMessage", get: "GetTask", cancel: "CancelTask", subscribe: "SubscribeToTask" },
  "0.3": { send: "message/send", stream: "message/stream", get: "tasks/get", cancel: "tasks/cancel", subscribe: "tasks/resubscribe" },
};

const ERRORS: ReadonlyMap<number, string> = new Map([
  [-32_001, "TaskNotFound"],
  [-32_002, "TaskNotCancelable"],
  [-32_003, "PushNotificationNotSupported"],
  [-32_004, "UnsupportedOperation"],
  [-32_005, "ContentTypeNotSupported"],
  [-32_006, "InvalidAgentResponse"],
  [-32_007, "ExtendedAgentCardNotConfigured"],
  [-32_008, "ExtensionSupportRequired"],
  [-32_009, "VersionNotSupported"],
]);

/** A client of one agent: A2A 1.0 or 0.3, over JSON-RPC or HTTP+JSON. */
export class A2aClient {
  readonly card: RemoteCard;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #policy: OutgoingPolicy;

  private constructor(card: RemoteCard, headers: Readonly<Record<string, string>>, policy: OutgoingPolicy) {
    this.card = card;
    this.#headers = headers;
    this.#policy = policy;
  }

  static async open(url: URL, headers: Readonly<Record<string, string>>, policy: OutgoingPolicy, signal: AbortSignal): Promise<A2aClient> {
    return new A2aClient(await readCard(url, headers, policy, signal), headers, policy);
  }

  /** Sends a message, and follows its task until it ends or waits. The message is never sent twice, unless it did not leave. */
  async *converse(message: OutgoingMessage, signal: AbortSignal): AsyncGenerator<RemoteEvent, void, undefined> {
    const { streams } = this.card.interface;
    const follow = new Follow();
    let failures = 0;
    const first = await this.#sendOnce(message, streams ? "stream" : "send", signal);
    let events: AsyncIterable<RemoteEvent> | null = first;
    for (;;) {
      if (events !== null) {
        try {
          for await (const event of events) {
            failures = 0;
            yield* follow.take(event);
            if (event.kind === "message") return;
            if (follow.isOver) return;
          }
        } catch (error) {
          if (!(error instanceof BrokenAnswer) || follow.taskId === null) throw error;
        }
      }
      const id = follow.taskId;
      if (id === null) throw new BrokenAnswer("the answer ended before it named a task, so it is not known whether the message arrived");
      if (streams) {
        if (++failures > SUBSCRIPTIONS)
          throw new BrokenAnswer(`the stream of task '${id}' broke off ${SUBSCRIPTIONS} times without a new event`);
        if (failures > 1) await pause(POLL_MS.first * failures, undefined, { signal });
        events = await this.#subscribe(id, signal);
        if (events !== null) continue;
      } else {
        await pause(Math.min(POLL_MS.first * 2 ** failures++, POLL_MS.most), undefined, { signal });
      }
      // The task has ended meanwhile, or the agent has no streams.
      yield* follow.take({ kind: "task", task: await this.get(id, signal) });
      if (follow.isOver) return;
      events = null;
    }
  }

  async get(id: string, signal: AbortSignal): Promise<RemoteTask> {
    return readTask(await this.#call("get", { id }, signal));
  }

  /** Never fails: the agent may have ended the task already. */
  async cancel(id: string, signal: AbortSignal): Promise<void> {
    await this.#call("cancel", { id }, signal).catch(() => {});
  }

  async #sendOnce(message: OutgoingMessage, operation: "send" | "stream", signal: AbortSignal): Promise<AsyncIterable<RemoteEvent>> {
    const params = sendParams(message, this.card.interface.version);
    for (let attempt = 1; ; attempt++) {
      try {
        return this.#events(await this.#request(operation, params, signal));
      } catch (error) {
        if (!(error instanceof NotSent) || attempt === SENDS) throw error;
        await pause(POLL_MS.first * attempt, undefined, { signal });
      }
    }
  }

  /** The events of a task from now on; null if it has ended, or cannot be subscribed to. */
  async #subscribe(id: string, signal: AbortSignal): Promise<AsyncIterable<RemoteEvent> | null> {
    try {
      const events = this.#events(await this.#request("subscribe", { id }, signal))[Symbol.asyncIterator]();
      // An error of JSON-RPC may be the first event.
      const first = await events.next();
      return first.done === true ? null : prepend(first.value, events);
    } catch (error) {
      if (error instanceof A2aError || error instanceof BrokenAnswer) return null;
      throw error;
    }
  }

  async #call(operation: Operation, params: { readonly id: string }, signal: AbortSignal): Promise<unknown> {
    const answer = await this.#request(operation, params, signal);
    return this.#result(await bodyOf(answer));
  }

  #request(operation: Operation, params: object, signal: AbortSignal): Promise<IncomingMessage> {
    const { binding, version } = this.card.interface;
    const streaming = operation === "stream" || operation === "subscribe";
    const headers = {
      ...this.#headers,
      accept: streaming ? "text/event-stream" : "application/json",
      "content-type": "application/json",
      "a2a-version": version,
    };
    const { url, method, body } = binding === "JSONRPC" ? this.#rpc(operation, params) : this.#http(operation, params);
    return sendRequest(url, { method, headers, signal, ...(body !== undefined && { body: JSON.stringify(body) }) }, this.#policy);
  }

  #rpc(operation: Operation, params: object) {
    const { url, version } = this.card.interface;
    return { url, method: "POST" as const, body: { jsonrpc: "2.0", id: randomUUID(), method: METHODS[version][operation], params } };
  }

  #http(operation: Operation, params: object) {
    const { version } = this.card.interface;
    const below = (path: string) => httpUrl(this.card.interface, `${version === "0.3" ? "/v1" : ""}${path}`);
    if (operation === "send" || operation === "stream")
      return { url: below(`/message:${operation}`), method: "POST" as const, body: params };
    const id = encodeURIComponent((params as { id: string }).id);
    if (operation === "get") return { url: below(`/tasks/${id}`), method: "GET" as const, body: undefined };
    return { url: below(`/tasks/${id}:${operation}`), method: "POST" as const, body: {} };
  }

  async *#events(answer: IncomingMessage): AsyncGenerator<RemoteEvent, void, undefined> {
    if (!String(answer.headers["content-type"]).startsWith("text/event-stream")) {
      yield readEvent(this.#result(await bodyOf(answer)));
      return;
    }
    const decoder = new SseDecoder(MAX_EVENT_BYTES);
    let count = 0;
    try {
      for await (const chunk of boundedChunks(answer, { maxBytes: MAX_STREAM_BYTES })) {
        for (const { data } of decoder.push(chunk)) {
          if (data === "") continue;
          if (++count > MAX_EVENTS) throw new Error(`the agent sent more than ${MAX_EVENTS} events for one message`);
          yield readEvent(this.#result({ status: 200, value: parseBoundedJson(data) }));
        }
      }
    } catch (error) {
      throw isCut(error) ? new BrokenAnswer("the stream broke off", { cause: error }) : error;
    } finally {
      answer.destroy();
    }
  }

  /** What an answer holds, without the envelope of its binding. */
  #result({ status, value }: Body): unknown {
    if (!isObject(value)) throw new Error(`the agent answered with status ${status} and no object`);
    if (isObject(value.error)) throw errorOf(value.error);
    if (this.card.interface.binding === "JSONRPC" && "result" in value) return value.result;
    if (status >= 400) throw new Error(`the agent answered with status ${status}`);
    return value;
  }
}

interface Body {
  readonly status: number;
  readonly value: unknown;
}

/** What has been seen of a task, so that a snapshot of it repeats nothing. */
class Follow {
  taskId: string | null = null;
  isOver = false;
  #hasTask = false;
  #state = "";
  readonly #parts = new Map<string, number>();

  *take(event: RemoteEvent): Generator<RemoteEvent, void, undefined> {
    switch (event.kind) {
      case "message":
        yield event;
        return;
      case "artifact":
        this.taskId ??= event.taskId;
        this.#count(event.artifact.artifactId, event.artifact.parts.length, event.append);
        yield event;
        return;
      case "status":
        yield* this.#status(event.taskId, event.state, event);
        return;
      case "task": {
        const { id, state, said, artifacts } = event.task;
        this.taskId = id;
        if (!this.#hasTask) yield { kind: "task", task: { ...event.task, artifacts: [] } };
        this.#hasTask = true;
        for (const artifact of artifacts) {
          const seen = this.#parts.get(artifact.artifactId) ?? 0;
          const parts = artifact.parts.slice(seen);
          if (parts.length === 0) continue;
          this.#count(artifact.artifactId, parts.length, seen > 0);
          yield { kind: "artifact", taskId: id, artifact: { ...artifact, parts }, append: seen > 0, last: isOver(state) };
        }
        if (isOver(state)) yield* this.#status(id, state, { kind: "status", taskId: id, state, said });
      }
    }
  }

  *#status(id: string, state: string, event: Extract<RemoteEvent, { kind: "status" }>): Generator<RemoteEvent, void, undefined> {
    this.taskId ??= id;
    this.isOver = isOver(event.state);
    // A state that was heard before its message is worth no second event.
    if (state === this.#state && event.said === null) return;
    this.#state = state;
    yield event;
  }

  #count(id: string, parts: number, append: boolean): void {
    this.#parts.set(id, (append ? (this.#parts.get(id) ?? 0) : 0) + parts);
  }
}

function sendParams({ parts, contextId, taskId }: OutgoingMessage, version: "1.0" | "0.3"): object {
  const message = {
    messageId: randomUUID(),
    role: version === "1.0" ? "ROLE_USER" : "user",
    parts: parts.map((part) => writePart(part, version)),
    ...(version === "0.3" && { kind: "message" }),
    ...(contextId !== null && { contextId }),
    ...(taskId !== null && { taskId }),
  };
  // A send that waits would break off with the connection; the task is asked for instead.
  return { message, configuration: version === "1.0" ? { returnImmediately: true } : { blocking: false } };
}

function httpUrl({ url }: AgentInterface, path: string): URL {
  const whole = new URL(url);
  whole.pathname = `${url.pathname.replace(/\/$/, "")}${path}`;
  return whole;
}

async function bodyOf(answer: IncomingMessage): Promise<Body> {
  try {
    const text = await readBoundedText(answer, { maxBytes: MAX_EVENT_BYTES });
    return { status: answer.statusCode ?? 0, value: parseBoundedJson(text) };
  } catch (error) {
    throw isCut(error) ? new BrokenAnswer("the answer broke off", { cause: error }) : error;
  }
}

/** JSON-RPC has a number for each error, HTTP a reason in the details. */
function errorOf({ code, message, details }: Readonly<Record<string, unknown>>): A2aError {
  const reason = (Array.isArray(details) ? details : []).find((one) => isObject(one) && typeof one.reason === "string") as
    | { readonly reason: string }
    | undefined;
  const named = reason?.reason
    .slice(0, 100)
    .replace(/(?:^|_)([A-Z])([A-Z]*)/g, (_, first: string, rest: string) => first + rest.toLowerCase());
  const name = named ?? (typeof code === "number" ? ERRORS.get(code) : undefined);
  return new A2aError(name ?? `error ${String(code)}`, typeof message === "string" ? message.slice(0, 2_000) : "no message");
}

/** The connection was closed by the other side. */
function isCut(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return code === "ECONNRESET" || code === "ERR_STREAM_PREMATURE_CLOSE" || code === "EPIPE";
}

async function* prepend(first: RemoteEvent, rest: AsyncIterator<RemoteEvent>): AsyncGenerator<RemoteEvent, void, undefined> {
  yield first;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}
