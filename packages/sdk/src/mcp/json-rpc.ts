import { boundedChunks, isObject, parseBoundedJson, ReadLimitExceeded, SseDecoder } from "@aenv/contract";
import { preview } from "../errors/failure.ts";
import { TransportError } from "../errors/http-errors.ts";
import { ProtocolError, RpcError } from "../errors/rpc-errors.ts";
import type { Deadline } from "../http/deadline.ts";
import type { HttpAnswer } from "../http/http.ts";

export interface RpcMessage {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Present on a request, absent on a notification. */
  readonly id?: string | number;
}

export type OnMessage = (message: RpcMessage) => void;

/** A stream that stays open longer than this after its response is aborted, and its connection is not reused. */
const DRAIN_LIMIT_MS = 1_000;

/**
 * Reads the result for `id` from a JSON or an event-stream response; other messages of a stream go to `onMessage`.
 * After the result the stream is drained under the detached deadline: if the server ends it, the connection can be
 * reused. A response of more than `maxBytes`, streams included, throws an AnswerLimitError or a ReadLimitExceeded.
 */
export async function readResult(
  answer: HttpAnswer,
  id: number,
  onMessage: OnMessage,
  deadline: Deadline,
  maxBytes: number,
): Promise<unknown> {
  if (!answer.header("content-type")?.startsWith("text/event-stream")) return readJson(await answer.text(maxBytes), id);
  const events = readEvents(answer, maxBytes);
  const found = await findAnswer(events, id, onMessage);
  if (found === null) throw new TransportError("the stream ended before the response", { wasSent: true });
  deadline.detach(DRAIN_LIMIT_MS);
  void drain(events).finally(() => deadline.close());
  return resultOf(found);
}

async function findAnswer(events: AsyncIterator<string>, id: number, onMessage: OnMessage): Promise<Record<string, unknown> | null> {
  for (let next = await events.next(); !next.done; next = await events.next()) {
    const message = parseMessage(next.value);
    if (isAnswer(message, id)) return message;
    if (isObject(message) && typeof message.method === "string") onMessage(asMessage(message, message.method));
  }
  return null;
}

/** A short message takes as much time and memory as one of this size. */
const MESSAGE_BYTES = 512;

async function* readEvents(answer: HttpAnswer, maxBytes: number): AsyncGenerator<string> {
  const decoder = new SseDecoder(maxBytes);
  const maxMessages = Math.floor(maxBytes / MESSAGE_BYTES);
  let messages = 0;
  for await (const chunk of boundedChunks(answer.chunks(), { maxBytes })) {
    for (const event of decoder.push(chunk)) {
      if (++messages > maxMessages) throw new ReadLimitExceeded("messages", maxMessages);
      if (event.event === "message" && event.data !== "") yield event.data;
    }
  }
}

async function drain(events: AsyncIterator<string>): Promise<void> {
  try {
    while (!(await events.next()).done);
  } catch {
    // The result has been read already.
  }
}

function readJson(text: string, id: number): unknown {
  if (text.trim() === "") throw new ProtocolError("the response is empty", true);
  const message = parseMessage(text);
  if (isAnswer(message, id)) return resultOf(message);
  throw new ProtocolError(`the body is not a JSON-RPC response to request ${id}: ${preview(text)}`);
}

function parseMessage(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    if (error instanceof ReadLimitExceeded) throw error;
    throw new ProtocolError(`the response is not JSON: ${preview(text)}`);
  }
}

/** An error has no id if the server could not parse the request. */
function isAnswer(message: unknown, id: number): message is Record<string, unknown> {
  if (!isObject(message)) return false;
  if (isObject(message.error)) return message.id === id || message.id === null || message.id === undefined;
  return message.id === id && "result" in message;
}

function resultOf(message: Readonly<Record<string, unknown>>): unknown {
  const { error } = message;
  if (!isObject(error)) return message.result;
  throw new RpcError(Number(error.code), typeof error.message === "string" ? error.message : "unknown error", error.data);
}

function asMessage(message: Readonly<Record<string, unknown>>, method: string): RpcMessage {
  const { id, params } = message;
  return { method, params: isObject(params) ? params : {}, ...((typeof id === "string" || typeof id === "number") && { id }) };
}
