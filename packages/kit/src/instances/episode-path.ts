import { type CallToolResult, isObject, PlatformError, parseBoundedJson, roleName } from "@aenv/contract";
import * as z from "zod";
import { toolFailure } from "../compile/tool-result.ts";
import type { PathStep } from "../definition/definition.ts";
import { isPromise } from "./call.ts";

export interface PathLimits {
  readonly maxSteps: number;
  /** Characters of all arguments and words. */
  readonly maxCharacters: number;
}

const LIMITS: PathLimits = { maxSteps: 10_000, maxCharacters: 16 * 1_024 ** 2 };

/** Arguments are kept as text: the code of a tool may change the object that it gets. */
type Stored = ({ readonly tool: string; readonly text: string; isError: boolean } | { readonly say: string }) & OfRole;

/** Absent without roles. */
interface OfRole {
  readonly role?: string;
}

const storedPath = z.array(
  z.union([
    z.strictObject({ tool: z.string(), arguments: z.record(z.string(), z.unknown()), isError: z.boolean(), role: roleName.optional() }),
    z.strictObject({ say: z.string(), role: roleName.optional() }),
  ]),
);

/** What the agent has done in an episode: its calls and its words, in the order in which they began. Nothing is left out of it. */
export class EpisodePath {
  readonly #steps: Stored[] = [];
  readonly #limits: PathLimits;
  #characters = 0;

  constructor(limits: PathLimits = LIMITS) {
    this.#limits = limits;
  }

  /** The path in a snapshot. An episode whose snapshot has none begins with an empty one. */
  static from(snapshot: unknown): EpisodePath {
    const path = new EpisodePath();
    if (!isObject(snapshot) || snapshot.path === undefined) return path;
    const { success, data } = storedPath.safeParse(snapshot.path);
    if (!success)
      throw new PlatformError("snapshot.invalid", "this snapshot cannot be restored: its path is not a list of calls and words");
    for (const step of data) {
      if ("say" in step) path.say(step.say, step.role ?? null);
      else path.#add({ tool: step.tool, text: JSON.stringify(step.arguments), isError: step.isError, ...ofRole(step.role) });
    }
    return path;
  }

  /** Runs a call and records it. A call beyond the limit does not run, so that the path stays complete. */
  call(
    tool: string,
    text: string,
    run: () => CallToolResult | Promise<CallToolResult>,
    role: string | null = null,
  ): CallToolResult | Promise<CallToolResult> {
    if (!this.#hasRoomFor(text)) return toolFailure(`not run: ${this.#limitReached()}`);
    // Until a call has succeeded it counts as failed, also in a copy that is made meanwhile.
    const step = { tool, text, isError: true, ...ofRole(role) };
    this.#add(step);
    const finish = (result: CallToolResult) => {
      step.isError = result.isError === true;
      return result;
    };
    const result = run();
    return isPromise(result) ? (result as Promise<CallToolResult>).then(finish) : finish(result);
  }

  say(text: string, role: string | null = null): void {
    if (!this.#hasRoomFor(text)) throw new PlatformError("episode.failed", this.#limitReached());
    this.#add({ say: text, ...ofRole(role) });
  }

  read(): PathStep[] {
    return this.#steps.map((step) =>
      "say" in step
        ? { say: step.say, ...ofRole(step.role) }
        : { tool: step.tool, arguments: argumentsIn(step.text), isError: step.isError, ...ofRole(step.role) },
    );
  }

  #add(step: Stored): void {
    this.#steps.push(step);
    this.#characters += textOf(step).length;
  }

  #hasRoomFor(text: string): boolean {
    return this.#steps.length < this.#limits.maxSteps && this.#characters + text.length <= this.#limits.maxCharacters;
  }

  #limitReached(): string {
    const { maxSteps, maxCharacters } = this.#limits;
    return `this episode has reached its limit of ${maxSteps} calls, or of ${maxCharacters} characters in them`;
  }
}

function ofRole(role: string | null | undefined): OfRole {
  return role == null ? {} : { role };
}

function textOf(step: Stored): string {
  return "say" in step ? step.say : step.text;
}

function argumentsIn(text: string): Record<string, unknown> {
  const value = parseBoundedJson(text);
  return isObject(value) ? value : {};
}
