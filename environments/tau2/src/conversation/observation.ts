import { toFunctionalFormat } from "../core/messages/action.ts";
import { isParticipant, isToolMessage, type Message } from "../core/messages/messages.ts";

/** The agent's observation: one line per message since its last own message, or of all messages. */
export function observationOf(heard: readonly Message[], showsAll: boolean): string {
  const lastOwn = heard.findLastIndex(({ role }) => role === "assistant");
  return heard
    .slice(showsAll ? 0 : lastOwn + 1)
    .map(lineOf)
    .join("\n");
}

function lineOf(message: Message): string {
  if (isParticipant(message)) {
    const calls = message.tool_calls?.map(({ name, arguments: args }) => toFunctionalFormat(name, args)).join(", ");
    return `${message.role}: ${calls ?? message.content ?? "None"}`;
  }
  return `tool: ${(isToolMessage(message) ? message.content : null) ?? "None"}`;
}
