import type { ToolDescriptor } from "@aenv/contract";
import type { AgentMessage, Player, TurnAgent } from "../player/agent.ts";
import { pick, randomValue, seededRandom } from "./random-value.ts";

export interface RandomAgentOptions {
  /** Tool calls in an episode. */
  readonly calls: number;
}

/** Calls random tools with random arguments that fit their schemas: a baseline, and a search for crashes. */
export function randomAgent({ calls }: RandomAgentOptions = { calls: 10 }): TurnAgent {
  return { name: "random", settings: { calls }, begin: ({ tools, seed }) => new RandomPlayer(tools, seed, calls, 0) };
}

class RandomPlayer implements Player {
  readonly #tools: readonly ToolDescriptor[];
  readonly #calls: number;
  readonly #random: () => number;
  #made: number;

  constructor(tools: readonly ToolDescriptor[], seed: number, calls: number, made: number) {
    this.#tools = tools;
    this.#calls = calls;
    this.#made = made;
    this.#random = seededRandom(seed);
  }

  async next(): Promise<AgentMessage | null> {
    if (this.#made >= this.#calls || this.#tools.length === 0) return null;
    const { name, inputSchema } = pick(this.#tools, this.#random);
    const text = JSON.stringify(randomValue(inputSchema, this.#random));
    const id = `call_${this.#made++}`;
    return { message: { role: "assistant", content: "", tool_calls: [{ id, type: "function", function: { name, arguments: text } }] } };
  }

  copy(seed: number): Player {
    return new RandomPlayer(this.#tools, seed, this.#calls, this.#made);
  }
}
