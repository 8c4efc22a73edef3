import type { Conversation, Trajectory } from "@aenv/contract";

/** A conversation of a trajectory, and which of its messages a model or an agent wrote in it. */
export interface TrainedConversation extends Conversation {
  /** The assistant messages to learn from. Others are context that the model saw, and belong to another conversation. */
  readonly trained: ReadonlySet<number>;
}

/** The conversations that can be learned from: one, or several of a program that talked to its model in more than one. */
export function conversationsOf({ messages, tools, offered_tools, conversations = [], turns }: Trajectory): TrainedConversation[] {
  const all = [...conversations.map((one, at) => ({ ...one, at })), { messages, tools: offered_tools ?? tools, at: undefined }];
  return all.flatMap(({ at, ...one }) => {
    const written = turns.flatMap(({ message, conversation }) => (conversation === at && message !== null ? [message] : []));
    // An agent that is no model has no turns: all that it said counts.
    const assistant = one.messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
    const trained = new Set(turns.length === 0 ? assistant : written);
    return trained.size === 0 ? [] : [{ ...one, trained }];
  });
}
