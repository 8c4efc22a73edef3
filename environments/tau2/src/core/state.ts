import { PyError, typeError, valueError } from "@aenv/benchmark";
import { equals } from "../python/equality.ts";
import { readJsonOr } from "../python/json/reader.ts";
import type { Dict, PyValue } from "../python/values/values.ts";
import type { Environment, FunctionCall } from "./environment.ts";
import {
  className,
  isParticipant,
  isToolMessage,
  type Message,
  printToolCall,
  printToolMessage,
  type ToolCall,
  type ToolMessage,
} from "./messages/messages.ts";

/** The initial state of an episode, in addition to the contents of the databases. */
export interface InitialState {
  readonly initialization_data: { readonly agent_data: Dict | null; readonly user_data: Dict | null } | null;
  readonly initialization_actions: readonly FunctionCall[] | null;
  readonly message_history: readonly Message[] | null;
}

/** Brings a new environment to the start of an episode, or to the current state of a recorded one. */
export function setState(environment: Environment, initial: InitialState | null, history: readonly Message[], isStrict = true): void {
  if (environment.isSolo && history.some(({ role }) => role === "user")) {
    throw new PyError("AssertionError", "User messages are not allowed in solo mode");
  }
  applyData(environment, initial?.initialization_data ?? null);
  for (const action of initial?.initialization_actions ?? []) environment.runFunction(action);
  for (const [call, recorded] of pairsOf(history)) replay(environment, call, recorded, isStrict);
  environment.sync();
}

/** As in the reference, the updated database replaces the other side's too, even if their models differ. */
function applyData({ tools, userTools }: Environment, data: InitialState["initialization_data"]): void {
  if (data === null) return;
  if (data.agent_data !== null && tools !== null) {
    tools.updateDb(data.agent_data);
    if (userTools !== null) userTools.db = tools.db;
  }
  if (data.user_data !== null && userTools !== null) {
    userTools.updateDb(data.user_data);
    if (tools !== null) tools.db = userTools.db;
  }
}

/** Every tool call of a history with its result. */
function pairsOf(history: readonly Message[]): [ToolCall, ToolMessage][] {
  const pairs: [ToolCall, ToolMessage][] = [];
  const rest = [...history];
  for (let message = rest.shift(); message !== undefined; message = rest.shift()) {
    if (isToolMessage(message)) throw valueError("Tool message not expected. Tool messages should always follow a tool call.");
    if (!isParticipant(message)) continue;
    for (const call of message.tool_calls ?? []) pairs.push([call, answerTo(call, rest.shift())]);
  }
  return pairs;
}

function answerTo(call: ToolCall, message: Message | undefined): ToolMessage {
  if (message === undefined) throw valueError("Tool message expected. Got None.");
  if (!isToolMessage(message)) throw valueError(`Tool message expected. Got <class 'tau2.data_model.message.${className(message)}'>`);
  if (message.id !== call.id) throw valueError(`Tool call id mismatch. Got ${call.id} and ${message.id}`);
  return message;
}

/** Runs a recorded call again if its tool mutates state, and compares the result with the recorded one. */
function replay(environment: Environment, call: ToolCall, recorded: ToolMessage, isStrict: boolean): void {
  const tool = environment.tools?.tools.get(call.name) ?? environment.userTools?.tools.get(call.name);
  if (tool === undefined || !tool.mutatesState) return;
  const returned = environment.getResponse(call);
  if (equals(parsed(returned.content), parsed(recorded.content)) || !isStrict) return;
  throw valueError(
    `Tool call:\n${printToolCall(call)}\n\nReturned:\n${printToolMessage(returned)}\n\nExpected:\n${printToolMessage(recorded)}`,
  );
}

function parsed(content: string | null): PyValue {
  if (content === null) throw typeError("the JSON object must be str, bytes or bytearray, not NoneType");
  return readJsonOr(content, content);
}
