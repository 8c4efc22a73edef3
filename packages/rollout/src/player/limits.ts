import type { StopReason } from "@aenv/contract";

/** What an agent may use in one episode; what is left out has no limit. */
export interface Limits {
  readonly turns?: number | undefined;
  readonly toolCalls?: number | undefined;
  /** Tokens that the model may write in all its turns together. */
  readonly tokens?: number | undefined;
  readonly seconds?: number | undefined;
}

/** Thrown when the agent has used up a limit. It ends the episode, which the environment then scores: no failure of the platform. */
export class LimitReached extends Error {
  override readonly name = "LimitReached";
  readonly stopReason: StopReason;

  constructor(stopReason: StopReason, message: string) {
    super(message);
    this.stopReason = stopReason;
  }
}

/** Counts what an agent uses, and throws `LimitReached` before it uses more than it may. */
export class Meter {
  readonly limits: Limits;
  #turns = 0;
  #toolCalls = 0;
  #tokens = 0;

  constructor(limits: Limits, used: { readonly turns: number; readonly toolCalls: number; readonly tokens: number } = NOTHING) {
    this.limits = limits;
    this.#turns = used.turns;
    this.#toolCalls = used.toolCalls;
    this.#tokens = used.tokens;
  }

  get used(): { readonly turns: number; readonly toolCalls: number; readonly tokens: number } {
    return { turns: this.#turns, toolCalls: this.#toolCalls, tokens: this.#tokens };
  }

  /** Tokens that the model may still write; undefined without a limit. */
  get tokensLeft(): number | undefined {
    return this.limits.tokens === undefined ? undefined : Math.max(0, this.limits.tokens - this.#tokens);
  }

  beginTurn(): void {
    const { turns, tokens } = this.limits;
    if (turns !== undefined && this.#turns >= turns) throw new LimitReached("max_turns", `the agent has had its ${turns} turns`);
    if (tokens !== undefined && this.#tokens >= tokens) throw new LimitReached("max_tokens", `the model has written its ${tokens} tokens`);
    this.#turns++;
  }

  /** A turn that the model's endpoint did not answer is not counted. */
  returnTurn(): void {
    this.#turns--;
  }

  beginToolCall(): void {
    const { toolCalls } = this.limits;
    if (toolCalls !== undefined && this.#toolCalls >= toolCalls) {
      throw new LimitReached("max_tool_calls", `the agent has made its ${toolCalls} tool calls`);
    }
    this.#toolCalls++;
  }

  addTokens(count: number): void {
    this.#tokens += count;
  }
}

const NOTHING = { turns: 0, toolCalls: 0, tokens: 0 } as const;
