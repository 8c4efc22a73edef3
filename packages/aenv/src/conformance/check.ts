import type { EpisodeAbilities, Task, ToolDescriptor } from "@aenv/contract";
import { NotOffered } from "./violation.ts";
import type { Wire } from "./wire.ts";

/** What the checks know of the instance. Earlier checks fill it. */
export interface Subject {
  /** With roles, that of the first role. */
  wire: Wire;
  readonly health: string;
  readonly passReward: number;
  readonly maxTasks: number;
  /** Null for an environment without episodes that can be begun again. */
  abilities: EpisodeAbilities | null;
  /** Why `abilities` is null. */
  withoutEpisodes: string;
  tools: readonly ToolDescriptor[];
  /** Those that are played: some of each split. */
  tasks: readonly Task[];
}

/** One promise of an environment. Its name is a claim in plain words. */
export interface Check {
  readonly name: string;
  /** Returns what it has seen, if that says more than the name. Throws `Violation`, or `NotOffered`. */
  run(subject: Subject): Promise<string | undefined>;
}

export interface CheckResult {
  readonly name: string;
  readonly result: "passed" | "failed" | "skipped";
  readonly detail: string | null;
}

/** Runs the checks one after the other; `onResult` gets each at once. */
export async function runChecks(
  checks: readonly Check[],
  subject: Subject,
  onResult: (result: CheckResult) => void,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of checks) {
    signal.throwIfAborted();
    const result = await runCheck(check, subject);
    // The stop has ended the requests of this check.
    signal.throwIfAborted();
    onResult(result);
    results.push(result);
  }
  return results;
}

async function runCheck({ name, run }: Check, subject: Subject): Promise<CheckResult> {
  try {
    return { name, result: "passed", detail: (await run(subject)) ?? null };
  } catch (error) {
    if (error instanceof NotOffered) return { name, result: "skipped", detail: error.message };
    return { name, result: "failed", detail: (error as Error).message };
  }
}

/** The abilities of an environment that has this one. */
export function need(
  subject: Subject,
  ability: "prompt" | "reply" | "hear" | "status" | "stepRewards" | "digest" | "oracle",
): EpisodeAbilities {
  const abilities = needEpisodes(subject);
  if (!abilities[ability]) throw new NotOffered(`GET /episode says "${ability}": false`);
  return abilities;
}

/** Skips a check of what one agent does alone. */
export function needOneAgent({ wire }: Subject): void {
  if (wire.role !== null) throw new NotOffered("several agents play it, each in a role");
}

export function needEpisodes({ abilities, withoutEpisodes }: Subject): EpisodeAbilities {
  if (abilities === null) throw new NotOffered(withoutEpisodes);
  return abilities;
}
