import type { ChatMessage, Step, Trajectory } from "@aenv/contract";
import type { AgentMessage, Player, TurnAgent } from "../player/agent.ts";

/** Writes the messages again that an agent wrote in a trajectory. For a program, which has its own messages, it makes the same calls. */
export function replayAgent({ id, messages, steps }: Pick<Trajectory, "id" | "messages" | "steps">): TurnAgent {
  const [written, at] = isOfProgram(steps) ? [steps.map(messageOfStep), 0] : [messages, null];
  return { name: "replay", settings: { trajectory: id }, begin: () => new ReplayPlayer(written, at) };
}

/** Whether a program made the calls by itself: they do not belong to messages of the episode. */
export function isOfProgram(steps: readonly Step[]): boolean {
  return steps.some(({ message }) => message === null);
}

function messageOfStep({ call: { id, name, arguments: args } }: Step): ChatMessage {
  return {
    role: "assistant",
    content: "",
    tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(args) } }],
  };
}

class ReplayPlayer implements Player {
  readonly #messages: readonly ChatMessage[];
  /** Where the next message is looked for; null before the first. */
  #at: number | null;

  constructor(messages: readonly ChatMessage[], at: number | null) {
    this.#messages = messages;
    this.#at = at;
  }

  async next(prompt: readonly ChatMessage[]): Promise<AgentMessage | null> {
    // A prompt may hold messages in the agent's name, such as a greeting. It is the environment's, so it is not written again.
    const at = this.#messages.findIndex(({ role }, position) => role === "assistant" && position >= (this.#at ?? prompt.length));
    this.#at = at === -1 ? this.#messages.length : at + 1;
    const message = this.#messages[at];
    return message === undefined ? null : { message };
  }

  copy(): Player {
    return new ReplayPlayer(this.#messages, this.#at);
  }
}
