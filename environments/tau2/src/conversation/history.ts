import { valueError } from "@aenv/benchmark";
import { className, isParticipant, isToolMessage, type Message, type ParticipantMessage, textOf } from "../core/messages/messages.ts";

/** The tokens with which a user ends a conversation: satisfied, transferred to a human, or out of scope of the scenario. */
const USER_STOP_TOKENS = ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"];
export const STOP_TOKEN = "###STOP###";

/** A stop token in a message with tool calls does not count. */
export function isUserStop({ tool_calls, content }: ParticipantMessage): boolean {
  return tool_calls === null && USER_STOP_TOKENS.some((token) => content?.includes(token));
}

/** Whether the agent sees a message of a stored history. */
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

/** A participant's message must have content or tool calls. */
export function checkMessage(message: ParticipantMessage): void {
  if (message.tool_calls !== null || textOf(message) !== null) return;
  const name = className(message);
  throw valueError(`${name} must have either content or tool_calls. Got ${name}\nis_final_chunk: True`);
}

/** Refuses a history with unpaired calls and results. As in the reference, results may be missing at the end. */
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
