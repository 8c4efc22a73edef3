import type { ChatMessage, OracleAction } from "@aenv/contract";
import type { AgentMessage, Player, TurnAgent } from "../player/agent.ts";
import { AgentError } from "../player/failure.ts";

/** Plays the same actions in every episode, then stops. */
export function scriptedAgent(actions: readonly OracleAction[]): TurnAgent {
  return { name: "scripted", settings: { actions }, begin: () => new ScriptedPlayer(actions) };
}

/** Does nothing: what an environment scores without an agent. */
export function noopAgent(): TurnAgent {
  return { name: "noop", settings: {}, begin: () => new ScriptedPlayer([]) };
}

/** Plays the solution that the environment itself knows. */
export function oracleAgent(): TurnAgent {
  return {
    name: "oracle",
    settings: {},
    begin: async ({ oracle, task }) => {
      const actions = await oracle();
      if (actions !== null) return new ScriptedPlayer(actions);
      throw new AgentError(
        `the environment knows no solution of ${task.id === null ? "an episode without a task" : `task '${task.id}'`}; choose another agent`,
      );
    },
  };
}

/** Writes one message for each action of a list. */
export class ScriptedPlayer implements Player {
  readonly #actions: readonly OracleAction[];
  #at: number;

  constructor(actions: readonly OracleAction[], at = 0) {
    this.#actions = actions;
    this.#at = at;
  }

  async next(): Promise<AgentMessage | null> {
    const action = this.#actions[this.#at];
    if (action === undefined) return null;
    return { message: messageOf(action, this.#at++) };
  }

  copy(): Player {
    return new ScriptedPlayer(this.#actions, this.#at);
  }
}

function messageOf(action: OracleAction, at: number): ChatMessage {
  if ("say" in action) return { role: "assistant", content: action.say };
  const call = { name: action.tool, arguments: action.arguments_text ?? JSON.stringify(action.arguments) };
  return { role: "assistant", content: "", tool_calls: [{ id: `call_${at}`, type: "function", function: call }] };
}
