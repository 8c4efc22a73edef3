import { isParticipant, isToolMessage, type Message, type ParticipantMessage, type ToolCall } from "../core/messages.ts";
import type { JsonSchema } from "../core/parameters.ts";
import { PyError, valueError } from "../python/errors.ts";
import { readJson } from "../python/json-reader.ts";
import { quoteJson, writeJson } from "../python/json-writer.ts";
import { Dict, type PyValue } from "../python/values.ts";

/** A model behind an OpenAI-compatible endpoint. */
export interface ModelSettings {
  readonly model: string;
  /** Without a slash at its end, as in `https://host/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly temperature: number;
  readonly seed?: number;
}

export interface ChatOptions {
  readonly tools?: readonly JsonSchema[];
  readonly signal?: AbortSignal | undefined;
  /** Waits before another try. */
  readonly pause?: (ms: number) => Promise<void>;
}

const RETRIES = 3;
const TIMEOUT_MS = 300_000;

/** Asks a model for the next message of a conversation. Its calls are the assistant's, whoever it plays. */
export async function chat(settings: ModelSettings, messages: readonly Message[], options: ChatOptions = {}): Promise<ParticipantMessage> {
  const { tools = [] } = options;
  const body = {
    model: settings.model,
    messages: messages.map(toWire),
    temperature: settings.temperature,
    ...(settings.seed === undefined ? {} : { seed: settings.seed }),
    ...(tools.length === 0 ? {} : { tools, tool_choice: "auto" }),
  };
  return fromWire(readJson(await send(settings, JSON.stringify(body), options)));
}

/** Overload and broken lines are tried again; what the endpoint refuses is not. */
async function send(settings: ModelSettings, body: string, { signal, pause = wait }: ChatOptions): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await post(settings, body, signal);
    if (outcome.ok) return outcome.text;
    if (!outcome.isPassing || attempt === RETRIES) throw new Error(outcome.problem);
    await pause(500 * 2 ** attempt);
  }
}

type Outcome = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string; readonly isPassing: boolean };

async function post({ baseUrl, apiKey, model }: ModelSettings, body: string, signal?: AbortSignal): Promise<Outcome> {
  const asked = `the model '${model}' at ${baseUrl}`;
  const headers = { "content-type": "application/json", authorization: `Bearer ${apiKey}` };
  try {
    const deadline = AbortSignal.timeout(TIMEOUT_MS);
    const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    const response = await fetch(`${baseUrl}/chat/completions`, { method: "POST", headers, body, signal: either });
    const text = await response.text();
    if (response.ok) return { ok: true, text };
    const isPassing = response.status === 429 || response.status === 408 || response.status >= 500;
    return { ok: false, problem: withoutKey(`${asked} answered ${response.status}: ${text.slice(0, 500)}`, apiKey), isPassing };
  } catch (error) {
    if (signal?.aborted) throw error;
    return {
      ok: false,
      problem: `${asked} cannot be reached: ${String(error instanceof Error ? (error.cause ?? error) : error)}`,
      isPassing: true,
    };
  }
}

/** Some endpoints quote the key that they refuse. */
function withoutKey(text: string, apiKey: string): string {
  return apiKey === "" ? text : text.replaceAll(apiKey, "***");
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function toWire(message: Message): Record<string, unknown> {
  if (isToolMessage(message)) return { role: "tool", content: message.content, tool_call_id: message.id };
  if (!isParticipant(message)) return { role: message.role, content: "content" in message ? message.content : null };
  const { role, content, tool_calls } = message;
  if (role === "user") return { role, content };
  // No member rather than null: not every endpoint takes a null for calls.
  return { role, content, ...(tool_calls === null ? {} : { tool_calls: tool_calls.map(callToWire) }) };
}

function callToWire({ id, name, arguments: args }: ToolCall): Record<string, unknown> {
  return { id, name, type: "function", function: { name, arguments: writeJson(args) } };
}

function fromWire(answer: PyValue): ParticipantMessage {
  const choices = member(answer, "choices");
  const message = member(Array.isArray(choices) ? (choices[0] ?? null) : null, "message");
  if (!(message instanceof Dict)) throw new Error(`the model's answer holds no message: ${writeJson(answer).slice(0, 500)}`);
  const content = member(message, "content");
  const calls = member(message, "tool_calls");
  return {
    role: "assistant",
    content: typeof content === "string" ? content : null,
    tool_calls: Array.isArray(calls) && calls.length > 0 ? calls.map(callFromWire) : null,
  };
}

function callFromWire(call: PyValue): ToolCall {
  const target = member(call, "function");
  const [id, name, text] = [member(call, "id"), member(target, "name"), member(target, "arguments")];
  if (typeof name !== "string" || typeof text !== "string")
    throw new Error(`the model's tool call has no name or no arguments: ${writeJson(call)}`);
  const args = readJson(text);
  if (!(args instanceof Dict))
    throw new PyError("ValidationError", `the arguments of the call of '${name}' are no object: ${quoteJson(text)}`);
  return { id: typeof id === "string" ? id : "", name, arguments: args, requestor: "assistant" };
}

function member(value: PyValue, key: string): PyValue {
  return value instanceof Dict ? (value.get(key) ?? null) : null;
}

/** A user's history as a model sees it that plays the user: what the user said is its own, what the agent said comes from outside. */
export function flipped(history: readonly Message[]): Message[] {
  return history.map((message): Message => {
    if (isParticipant(message)) {
      if (message.role === "user") return { ...message, role: "assistant" };
      if (message.tool_calls !== null) throw valueError("Tool calls are not supported in the flipped messages");
      return { ...message, role: "user" };
    }
    if (isToolMessage(message) && message.requestor === "user") return message;
    throw valueError("Tool messages should be sent to the user in this message history");
  });
}
