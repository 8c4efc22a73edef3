import type { AgentAction, Speech } from "../conversation/gym.ts";
import { agentCall } from "../core/messages/messages.ts";
import type { RecordedReply } from "../llm/recorded-user.ts";
import { readJson } from "../python/json/reader.ts";
import { writeJson } from "../python/json/writer.ts";
import { Dict } from "../python/values/values.ts";

/** A recorded episode: its actions and the user's replies. Replaying them gives the same state. */
export interface EpisodeRecord {
  readonly domain: string;
  readonly taskId: string;
  readonly isSolo: boolean;
  readonly maxSteps: number;
  readonly actions: readonly RecordedAction[];
  /** Null if no model plays the user. */
  readonly replies: readonly RecordedReply[] | null;
  readonly rewards: readonly (number | null)[];
  readonly unscored: string | null;
  /** Set if it is unscored because a model failed. */
  readonly isModelFailure?: true;
}

/** The text of an action, words, or a call; its arguments are JSON text, which keeps ints and floats apart. */
type RecordedAction = string | Speech | { readonly name: string; readonly arguments: string; readonly words?: string };

export function toRecord(action: AgentAction): RecordedAction {
  if (typeof action === "string" || "say" in action) return action;
  if ("words" in action) return { name: action.call.name, arguments: writeJson(action.call.arguments), words: action.words };
  return { name: action.name, arguments: writeJson(action.arguments) };
}

export function fromRecord(action: RecordedAction): AgentAction {
  if (typeof action === "string" || "say" in action) return action;
  const args = readJson(action.arguments);
  if (!(args instanceof Dict)) throw new Error(`the recorded arguments of '${action.name}' are not a JSON object`);
  const call = agentCall(action.name, args);
  return action.words === undefined ? call : { call, words: action.words };
}
