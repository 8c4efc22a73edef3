import type { Trajectory } from "@aenv/contract";
import { digestOf } from "../journal/digest.ts";

/** Which trajectories an export takes. What is left out of the options leaves nothing out of the data. */
export interface FilterOptions {
  readonly minReward?: number;
  readonly maxReward?: number;
  /** Unscored trajectories are left out unless this is set. */
  readonly keepsUnscored?: boolean;
  /** Leaves out the second and later trajectories with the same task and messages. */
  readonly isDeduplicated?: boolean;
  /** Keeps the best so many of each group; of equal ones the first. */
  readonly bestOfGroup?: number;
  /** Keeps at most so many of each task. */
  readonly perTask?: number;
  readonly maxTokens?: number;
  readonly maxMessages?: number;
  /** Keeps tasks whose pass rate is within these bounds, both included: neither too easy nor too hard. */
  readonly passRate?: readonly [low: number, high: number];
  /** A reward of at least this counts as passed. */
  readonly passReward?: number;
}

/** Why a trajectory was left out. */
export type Dropped = "unscored" | "reward" | "pass rate" | "length" | "duplicate" | "not best of group" | "task limit";

export interface Filtered {
  readonly kept: number;
  readonly dropped: Readonly<Partial<Record<Dropped, number>>>;
}

/** What the filter has to know of all trajectories before it can decide about one. */
interface Survey {
  readonly passRates: ReadonlyMap<string, number>;
  readonly best: ReadonlySet<string>;
}

/**
 * Passes on the trajectories that the options keep, in order, and counts the others by reason. `read` is called twice if a choice
 * needs all of them first; nothing but scores is kept in memory.
 */
export async function* filterTrajectories(
  read: () => AsyncIterable<Trajectory>,
  options: FilterOptions,
  onEnd: (counts: Filtered) => void = () => {},
): AsyncGenerator<Trajectory> {
  const survey = await surveyOf(read, options);
  const dropped: Partial<Record<Dropped, number>> = {};
  const seen = new Set<string>();
  const ofTask = new Map<string, number>();
  let kept = 0;
  for await (const one of read()) {
    const reason = reasonToDrop(one, options, survey) ?? reasonToDropLater(one, options, seen, ofTask);
    if (reason !== null) {
      dropped[reason] = (dropped[reason] ?? 0) + 1;
      continue;
    }
    kept++;
    yield one;
  }
  onEnd({ kept, dropped });
}

function reasonToDrop(one: Trajectory, options: FilterOptions, { passRates, best }: Survey): Dropped | null {
  const { outcome, messages, usage } = one;
  const { minReward, maxReward, keepsUnscored = false, maxTokens, maxMessages, passRate, bestOfGroup } = options;
  if (outcome.kind === "unscored") return keepsUnscored ? null : "unscored";
  if (minReward !== undefined && outcome.reward < minReward) return "reward";
  if (maxReward !== undefined && outcome.reward > maxReward) return "reward";
  const rate = passRates.get(one.task.id ?? "");
  if (passRate !== undefined && (rate === undefined || rate < passRate[0] || rate > passRate[1])) return "pass rate";
  if (maxTokens !== undefined && usage.prompt_tokens + usage.completion_tokens > maxTokens) return "length";
  if (maxMessages !== undefined && messages.length > maxMessages) return "length";
  return bestOfGroup !== undefined && !best.has(one.id) ? "not best of group" : null;
}

/** The reasons that depend on which trajectories came before. */
function reasonToDropLater(one: Trajectory, options: FilterOptions, seen: Set<string>, ofTask: Map<string, number>): Dropped | null {
  const { isDeduplicated = false, perTask } = options;
  const task = one.task.id ?? "";
  const content = isDeduplicated ? digestOf([task, one.messages]) : "";
  if (isDeduplicated && seen.has(content)) return "duplicate";
  const count = ofTask.get(task) ?? 0;
  if (perTask !== undefined && count >= perTask) return "task limit";
  seen.add(content);
  ofTask.set(task, count + 1);
  return null;
}

async function surveyOf(read: () => AsyncIterable<Trajectory>, options: FilterOptions): Promise<Survey> {
  const { passRate, bestOfGroup, passReward = 1 } = options;
  const passes = new Map<string, { passed: number; of: number }>();
  const groups = new Map<string, { id: string; reward: number }[]>();
  if (passRate === undefined && bestOfGroup === undefined) return { passRates: new Map(), best: new Set() };
  for await (const { id, task, group, outcome } of read()) {
    if (outcome.kind === "unscored") continue;
    const count = passes.get(task.id ?? "") ?? { passed: 0, of: 0 };
    passes.set(task.id ?? "", { passed: count.passed + (outcome.reward >= passReward ? 1 : 0), of: count.of + 1 });
    const key = group?.id ?? id;
    groups.set(key, [...(groups.get(key) ?? []), { id, reward: outcome.reward }]);
  }
  const best = [...groups.values()].flatMap((group) => group.sort((a, b) => b.reward - a.reward).slice(0, bestOfGroup));
  return {
    passRates: new Map([...passes].map(([task, { passed, of }]) => [task, passed / of])),
    best: new Set(best.map(({ id }) => id)),
  };
}
