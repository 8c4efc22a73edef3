import type { ChatMessage, Trajectory } from "@aenv/contract";
import type { AgentMessage, Player, TurnAgent } from "./agent.ts";

/** Writes the messages again that an agent wrote in a trajectory. */
export function replayAgent({ id, messages }: Pick<Trajectory, "id" | "messages">): TurnAgent {
  const written = messages.filter(({ role }) => role === "assistant");
  return { name: "replay", settings: { trajectory: id }, begin: () => new ReplayPlayer(written, 0) };
}

class ReplayPlayer implements Player {
  readonly #written: readonly ChatMessage[];
  #at: number;

  constructor(written: readonly ChatMessage[], at: number) {
    this.#written = written;
    this.#at = at;
  }

  async next(): Promise<AgentMessage | null> {
    const message = this.#written[this.#at++];
    return message === undefined ? null : { message };
  }

  copy(): Player {
    return new ReplayPlayer(this.#written, this.#at);
  }
}
