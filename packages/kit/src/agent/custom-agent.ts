import { isPlatformError, type PlatformError } from "@aenv/contract";
import type { AgentContext, AgentPart, Part } from "../definition/agent.ts";
import type { ModelHandle } from "../models/model.ts";
import { partsText } from "./task.ts";

/** What an agent of any kind is given for a turn. */
export interface CustomTurn<Memory> {
  /** The text of the message. */
  readonly text: string;
  readonly parts: readonly Part[];
  /** What the last turn of the conversation has returned; undefined in the first one. */
  readonly memory: Memory | undefined;
  readonly context: AgentContext;
}

export interface CustomAnswer<Memory> {
  readonly answer: string | readonly Part[];
  /** Plain data, such as the messages so far; as before, if it is left out. */
  readonly memory?: Memory;
  /** The answer asks something: the task goes on with the next message. */
  readonly isQuestion?: boolean;
}

/** The memory of a conversation, in an object that turns can change. */
export interface CustomMemory<Memory> {
  value: Memory | undefined;
}

/**
 * An agent of a framework, or of your own. `run` plays one turn and returns the answer and the memory. Give the framework's client the
 * `fetch` of `modelFetch(context.model("main"))`, so that its model is called by the platform.
 *
 * @example
 * customAgent<AgentInputItem[]>(async ({ text, memory = [], context }) => {
 *   const result = await runnerFor(context).run(agent, [...memory, user(text)], { signal: context.signal });
 *   return { answer: String(result.finalOutput), memory: result.history };
 * });
 */
export function customAgent<Memory = unknown>(
  run: (turn: CustomTurn<Memory>) => Promise<CustomAnswer<Memory> | string> | CustomAnswer<Memory> | string,
): AgentPart<CustomMemory<Memory>> {
  return {
    begin: () => ({ value: undefined }),
    async *turn(parts, memory, context) {
      const models = new WatchedModels(context);
      const answered = await models.guard(() => run({ text: partsText(parts), parts, memory: memory.value, context: models.context }));
      const { answer, memory: after, isQuestion = false } = typeof answered === "string" ? { answer: answered } : answered;
      if (after !== undefined) memory.value = after;
      yield { kind: isQuestion ? "question" : "answer", parts: typeof answer === "string" ? [{ text: answer }] : answer };
    },
  };
}

/** Frameworks wrap the failure of a model in errors of their own, or make an answer of it. Here it stays what it is. */
class WatchedModels {
  readonly context: AgentContext;
  /** The failure of the last call of a model, if it failed. */
  #failure: PlatformError | null = null;

  constructor(context: AgentContext) {
    this.context = { ...context, model: (name) => this.#watched(context.model(name)) };
  }

  async guard<T>(run: () => T | Promise<T>): Promise<T> {
    try {
      const result = await run();
      if (this.#failure !== null) throw this.#failure;
      return result;
    } catch (error) {
      throw this.#failure ?? error;
    }
  }

  #watched(handle: ModelHandle): ModelHandle {
    return {
      name: handle.name,
      complete: async (request) => {
        try {
          const completion = await handle.complete(request);
          this.#failure = null;
          return completion;
        } catch (error) {
          if (isPlatformError(error, "model.failed")) this.#failure = error;
          throw error;
        }
      },
    };
  }
}
