import { isObject, parseBoundedJson, ReadLimitExceeded, readBoundedText } from "@aenv/contract";
import { ModelError } from "../player/failure.ts";
import type { Dialect } from "./dialect.ts";
import type { ModelAnswer } from "./http.ts";
import { serverSentEvents } from "./server-sent-events.ts";

/** The JSON of an answer that comes in one piece. */
export async function readWhole(body: ModelAnswer, dialect: Dialect): Promise<unknown> {
  try {
    // The body has its own limit.
    return dialect.parse(await readBoundedText(body, { maxBytes: Number.POSITIVE_INFINITY }));
  } catch (cause) {
    if (cause instanceof ReadLimitExceeded) throw cause;
    throw new ModelError("the model's answer is not JSON, or broke off", { retryable: true, cause });
  }
}

/** More than the tokens of any answer. */
const MAX_EVENTS = 500_000;

/** The answer that the events of a stream make up. */
export async function readStream(body: ModelAnswer, dialect: Dialect): Promise<unknown> {
  const stream = dialect.openStream();
  let events = 0;
  for await (const data of serverSentEvents(body)) {
    if (++events > MAX_EVENTS) throw new ModelError(`the model's stream has more than ${MAX_EVENTS} events`, { retryable: false });
    if (data === "[DONE]") break;
    const event = parseEvent(data);
    if (isObject(event.error) && event.type !== "error") {
      throw new ModelError(`the model's stream ended with an error: ${String(event.error.message)}`, { retryable: true });
    }
    stream.add(event);
  }
  const { answer } = stream;
  if (answer === null) throw new ModelError("the model's stream broke off before the answer was complete", { retryable: true });
  return answer;
}

function parseEvent(data: string): Record<string, unknown> {
  try {
    const event: unknown = parseBoundedJson(data);
    if (isObject(event)) return event;
  } catch (error) {
    if (error instanceof ReadLimitExceeded) throw error;
    // Reported below, like any other event that is no object.
  }
  throw new ModelError(`the model's stream holds an event that is no JSON object: ${data.slice(0, 100)}`, { retryable: true });
}
