import { className, isParticipant, isToolMessage, type Message, type ParticipantMessage, textOf } from "../core/messages/messages.ts";
import { valueError } from "../python/errors.ts";

/** What a user says to end a conversation: satisfied, handed over to a human, or beyond what the scenario knows. */
const USER_STOP_TOKENS = ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"];
export const STOP_TOKEN = "###STOP###";

/** A stop beside a tool call does not count. */
export function isUserStop({ tool_calls, content }: ParticipantMessage): boolean {
  return tool_calls === null && USER_STOP_TOKENS.some((token) => content?.includes(token));
}

/** Whether a message of a stored history is one that the agent knows of. */
export function isVisibleToAgent(message: Message): boolean {
  return isVisibleTo("assistant", message);
}

export function isVisibleToUser(message: Message): boolean {
  return isVisibleTo("user", message);
}

function isVisibleTo(side: "assistant" | "user", message: Message): boolean {
  if (isParticipant(message)) return message.role === side || message.tool_calls === null;
  return isToolMessage(message) && message.requestor === side;
}

/** A participant must say something or call something. */
export function checkMessage(message: ParticipantMessage): void {
  if (message.tool_calls !== null || textOf(message) !== null) return;
  const name = className(message);
  throw valueError(`${name} must have either content or tool_calls. Got ${name}\nis_final_chunk: True`);
}

/** Refuses a history in which calls and results do not pair up; results that are missing at its end pass, as they do in the reference. */
export function checkHistory(history: readonly Message[]): void {
  let expected = 0;
  let caller: string | null = null;
  for (const message of history) {
    if (isParticipant(message)) {
      checkMessage(message);
      if (message.tool_calls === null) {
        caller = null;
        continue;
      }
      if (expected > 0) throw valueError(`${expected} tool messages are missing. Got ${message.role} message.`);
      expected = message.tool_calls.length;
      caller = message.role;
    } else if (isToolMessage(message)) {
      if (expected === 0 || caller === null) throw valueError("No tool messages expected.");
      if (message.requestor !== caller) throw valueError(`Got tool message from ${message.requestor}, expected ${caller}.`);
      expected -= 1;
    } else throw valueError(`Invalid message type: <class 'tau2.data_model.message.${className(message)}'>`);
  }
}
