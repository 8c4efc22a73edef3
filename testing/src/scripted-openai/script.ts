import { ApiError } from "./error.ts";

/** One answer of the scripted model: text, tool calls, both, an error of the API, or a fault of the connection. */
export type ScriptedTurn = ScriptedAnswer | ConnectionFault;

export type ScriptedAnswer =
  | string
  | { readonly text?: string; readonly toolCalls?: readonly ScriptedToolCall[] }
  | { readonly status: number; readonly message: string; readonly headers?: Readonly<Record<string, string>> };

/** `silent` never answers. `cut` sends the first half of the answer and closes the connection. */
export type ConnectionFault = { readonly fault: "silent" } | { readonly fault: "cut"; readonly answer: ScriptedAnswer };

export interface ScriptedToolCall {
  readonly name: string;
  /** A string is sent unchanged, so that a script can send invalid JSON; other values are encoded. */
  readonly arguments?: unknown;
  readonly id?: string;
}

/**
 * A list is indexed by the conversation, not by arrival: a request with two assistant turns gets the third. So
 * one list serves many conversations at once, and a repeated request gets the same answer.
 */
export type Script = readonly ScriptedTurn[] | ((request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>);

/** A valid request, in one format for all APIs. */
export interface ModelRequest {
  readonly api: "chat" | "responses" | "messages";
  /** Number of accepted requests before it. */
  readonly index: number;
  /** Number of assistant turns in its conversation. */
  readonly turn: number;
  readonly model: string;
  readonly stream: boolean;
  readonly messages: readonly Message[];
  readonly tools: readonly OfferedTool[];
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Message {
  readonly role: "system" | "developer" | "user" | "assistant" | "tool";
  readonly text: string;
  readonly toolCalls?: readonly ToolCall[];
  readonly toolCallId?: string;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface OfferedTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly strict?: boolean;
}

/** A request before it is counted. */
export type Conversation = Pick<ModelRequest, "model" | "stream" | "messages" | "tools">;

/** One answer of the model, independent of the API. */
export interface Reply {
  /** Counts the answers; the ids of the answer are derived from it. */
  readonly serial: number;
  readonly model: string;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly usage: { readonly input: number; readonly output: number };
}

/** The script's turn for a request. */
export async function nextTurn(script: Script, request: ModelRequest): Promise<ScriptedTurn> {
  if (typeof script === "function") return await script(request);
  const turn = script[request.turn];
  if (turn !== undefined) return turn;
  throw new ApiError(400, `the script has ${script.length} turns, but turn ${request.turn + 1} was requested`, { code: "script_ended" });
}

/** A turn with its ids, independent of the API. */
export function replyOf(turn: ScriptedAnswer, request: ModelRequest, serial: number): Reply {
  if (typeof turn === "object" && "status" in turn) {
    throw new ApiError(turn.status, turn.message, turn.headers === undefined ? {} : { headers: turn.headers });
  }
  const { text = "", toolCalls = [] } = typeof turn === "string" ? { text: turn } : turn;
  const calls = toolCalls.map(({ id, name, arguments: args = {} }, position) => ({
    id: id ?? `call_${serial}_${position}`,
    name,
    arguments: typeof args === "string" ? args : JSON.stringify(args),
  }));
  const usage = { input: tokens(request.messages, request.tools), output: tokens(text, calls) };
  return { serial, model: request.model, text, toolCalls: calls, usage };
}

/** Four characters a token: not a tokenizer, but a number that grows with the text. */
function tokens(...said: readonly unknown[]): number {
  return Math.ceil(JSON.stringify(said).length / 4);
}
