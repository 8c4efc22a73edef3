import type { ChatMessage, OracleAction } from "@aenv/contract";
import type { AgentMessage, AgentStart, Player, TurnAgent } from "../player/agent.ts";
import { AgentError } from "../player/failure.ts";

/** Plays the same actions in every episode, then stops. */
export function scriptedAgent(actions: readonly OracleAction[]): TurnAgent {
  return { name: "scripted", settings: { actions }, begin: () => new ScriptedPlayer(actions) };
}

/** Does nothing: what an environment scores without an agent. */
export function noopAgent(): TurnAgent {
  return { name: "noop", settings: {}, begin: () => new ScriptedPlayer([]) };
}

/** Plays the solution that the environment itself knows. In a role, that is what to do next, and is asked for in each turn. */
export function oracleAgent(): TurnAgent {
  return {
    name: "oracle",
    settings: {},
    begin: async ({ oracle, task, role }) => {
      const actions = await oracle();
      if (actions !== null) return role === undefined ? new ScriptedPlayer(actions) : new OracleOfRole(oracle);
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

/** What a role should do depends on what the others do. */
class OracleOfRole implements Player {
  readonly #oracle: AgentStart["oracle"];
  #actions: readonly OracleAction[];
  #written: number;

  constructor(oracle: AgentStart["oracle"], actions: readonly OracleAction[] = [], written = 0) {
    this.#oracle = oracle;
    this.#actions = actions;
    this.#written = written;
  }

  async next(): Promise<AgentMessage | null> {
    if (this.#actions.length === 0) this.#actions = (await this.#oracle()) ?? [];
    const [action, ...rest] = this.#actions;
    if (action === undefined) return null;
    this.#actions = rest;
    return { message: messageOf(action, this.#written++) };
  }

  copy(): Player {
    return new OracleOfRole(this.#oracle, this.#actions, this.#written);
  }
}

function messageOf(action: OracleAction, at: number): ChatMessage {
  if ("say" in action) return { role: "assistant", content: action.say };
  const call = { name: action.tool, arguments: action.arguments_text ?? JSON.stringify(action.arguments) };
  return { role: "assistant", content: "", tool_calls: [{ id: `call_${at}`, type: "function", function: call }] };
}
