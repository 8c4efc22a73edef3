import { ApiError } from "./error.ts";

/** What the scripted model says: text, tool calls, both, or a refusal of the API itself. */
export type ScriptedTurn =
  | string
  | { readonly text?: string; readonly toolCalls?: readonly ScriptedToolCall[] }
  | { readonly status: number; readonly message: string; readonly headers?: Readonly<Record<string, string>> };

export interface ScriptedToolCall {
  readonly name: string;
  /** A string goes out as it is, so that a script can send broken JSON; anything else is encoded. */
  readonly arguments?: unknown;
  readonly id?: string;
}

/**
 * A list is indexed by the conversation, not by arrival: a request that holds two assistant turns gets the third. So
 * one list serves many conversations at once, and a repeated request gets the same answer.
 */
export type Script = readonly ScriptedTurn[] | ((request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>);

/** A request that passed the checks, in one shape for both APIs. */
export interface ModelRequest {
  readonly api: "chat" | "responses";
  /** How many accepted requests came before it. */
  readonly index: number;
  /** How many assistant turns its conversation already holds. */
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

/** What a request asks for, before it is counted. */
export type Conversation = Pick<ModelRequest, "model" | "stream" | "messages" | "tools">;

/** One answer of the model, ready to be written in either API's words. */
export interface Reply {
  /** Grows by one with each answer; the ids of the answer are made of it. */
  readonly serial: number;
  readonly model: string;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly usage: { readonly input: number; readonly output: number };
}

/** What the script says to a request. */
export async function nextTurn(script: Script, request: ModelRequest): Promise<ScriptedTurn> {
  if (typeof script === "function") return await script(request);
  const turn = script[request.turn];
  if (turn !== undefined) return turn;
  throw new ApiError(400, `the script has ${script.length} turns and was asked for turn ${request.turn + 1}`, { code: "script_ended" });
}

/** A turn with its ids, in the words that both APIs share. */
export function replyOf(turn: ScriptedTurn, request: ModelRequest, serial: number): Reply {
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

/** Four characters a token: no tokenizer, but a number that grows with what was said. */
function tokens(...said: readonly unknown[]): number {
  return Math.ceil(JSON.stringify(said).length / 4);
}
