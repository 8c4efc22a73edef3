import {
  isErrorCode,
  isObject,
  type Json,
  messageOf,
  PlatformError,
  parseBoundedJson,
  type Reward,
  sandboxEnvelope,
  sseEvents,
} from "@aenv/contract";
import type { ChildAnswer } from "./backend.ts";

/** The answer of the trainer API of a child. Its failure is thrown with the same code. */
export function dataOf(name: string, { status, text }: ChildAnswer): Json {
  const envelope = sandboxEnvelope.safeParse(jsonOf(name, text));
  if (!envelope.success) throw unexpected(name, `status ${status} and no answer of an environment`);
  const { success, data = null, error, errorInfo } = envelope.data;
  if (success) return data as Json;
  throw failure(name, errorInfo?.code, error ?? `it answered with status ${status}`, errorInfo?.retryable);
}

/** The result of a request over MCP, which is sent as JSON or, when it takes longer, as a stream of events. */
export function resultOf(name: string, { status, type, text }: ChildAnswer): Record<string, unknown> {
  const isStream = type.startsWith("text/event-stream");
  const messages = (isStream ? sseEvents(text).map(({ data }) => data) : [text]).map((one) => jsonOf(name, one));
  const answer = messages.find((one) => isObject(one) && (one.result !== undefined || one.error !== undefined));
  if (!isObject(answer)) throw unexpected(name, `status ${status} and no answer in MCP`);
  if (isObject(answer.result)) return answer.result;
  const { message = "it answered with an error", data } = isObject(answer.error) ? answer.error : {};
  throw failure(name, isObject(data) ? data.code : undefined, String(message), undefined);
}

/** The reward as a number, with its components. What is no number is an error, never a zero. */
export function rewardOf(name: string, value: Json): Reward {
  const whole = isObject(value) ? value : { reward: value };
  const total = whole.reward ?? whole.score;
  if (typeof total !== "number" || !Number.isFinite(total))
    throw new PlatformError("reward.failed", `the reward of the child '${name}' is no number: ${JSON.stringify(value).slice(0, 200)}`);
  const components = isObject(whole.components) ? (whole.components as Record<string, number>) : {};
  return { reward: total, components };
}

function jsonOf(name: string, text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    throw unexpected(name, `what is not JSON: ${messageOf(error)}`);
  }
}

function failure(name: string, code: unknown, message: string, retryable: boolean | undefined): PlatformError {
  const options = retryable === undefined ? {} : { retryable };
  return new PlatformError(isErrorCode(code) ? code : "instance.failed", `child '${name}': ${message}`, options);
}

function unexpected(name: string, what: string): PlatformError {
  return new PlatformError("instance.failed", `child '${name}' answered with ${what}`);
}
