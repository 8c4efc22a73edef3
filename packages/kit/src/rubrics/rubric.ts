import { nearestName, PlatformError } from "@aenv/contract";
import type { RewardContext, RewardDefinition } from "../definition/definition.ts";
import { rememberRubric } from "../definition/rubric-source.ts";
import { rememberLocation } from "../definition/source-location.ts";

/** A value, or a function that takes it from the task or the state. */
export type Given<T, State> = T | ((context: RewardContext<State>) => T | Promise<T>);

/** What every ready-made reward takes beside its own options. */
export interface RubricOptions {
  readonly name: string;
  readonly description?: string;
  /** Its weight in the total; 1 by default. */
  readonly weight?: number;
}

const COMMON = ["name", "description", "weight"];

/** A ready-made reward while it is defined: it reports wrong options, and makes the definition. */
export class Rubric<Options extends RubricOptions> {
  readonly options: Options;
  readonly #what: string;
  // biome-ignore lint/complexity/noBannedTypes: captureStackTrace takes any function
  readonly #caller: Function;

  // biome-ignore lint/complexity/noBannedTypes: as above
  constructor(caller: Function, options: Options, own: readonly string[]) {
    this.options = options;
    this.#caller = caller;
    this.#what = `${caller.name} '${String(options?.name)}'`;
    const known = [...COMMON, ...own];
    for (const key of Object.keys(options ?? {})) {
      if (known.includes(key)) continue;
      const meant = nearestName(key, known);
      throw this.invalid(`unknown option '${key}'; ${meant === null ? `the options are ${known.join(", ")}` : `did you mean '${meant}'?`}`);
    }
  }

  /** A wrong option: the environment does not load. */
  invalid(problem: string): PlatformError {
    return new PlatformError("environment.invalid", `${this.#what}: ${problem}`);
  }

  /** A reward that cannot be computed, because the environment gave what the check cannot use. It is no zero. */
  failed(problem: string): PlatformError {
    return new PlatformError("reward.failed", `${this.#what}: ${problem}`);
  }

  define<State>(
    score: (context: RewardContext<State>) => unknown,
    fields: Pick<RewardDefinition, "path" | "timeoutMs"> = {},
  ): RewardDefinition<State> {
    const { name, description, weight } = this.options;
    const definition: RewardDefinition<State> = {
      name,
      ...(description !== undefined && { description }),
      ...(weight !== undefined && { weight }),
      ...fields,
      score: rememberRubric(score, `${this.#caller.name} ${JSON.stringify(this.options, withCode)}`),
    };
    return rememberLocation(definition, this.#caller);
  }
}

export async function resolveGiven<T, State>(given: Given<T, State>, context: RewardContext<State>): Promise<T> {
  return typeof given === "function" ? await (given as (context: RewardContext<State>) => T | Promise<T>)(context) : given;
}

/** What JSON leaves out is code, a pattern or a large number here. */
function withCode(_: string, value: unknown): unknown {
  return typeof value === "function" || typeof value === "bigint" || value instanceof RegExp ? String(value) : value;
}

/** A value in an error message. */
export function shown(value: unknown): string {
  const text =
    typeof value === "string" ? JSON.stringify(value) : typeof value === "object" && value !== null ? "an object" : String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
