import type { Trajectory, Turn } from "@aenv/contract";
import { digestOf } from "../journal/digest.ts";
import { ofRole, type Sample } from "./role-views.ts";

/** Which trajectories an export takes. What is left out of the options leaves nothing out of the data. */
export interface FilterOptions {
  readonly minReward?: number;
  readonly maxReward?: number;
  /** Unscored trajectories are left out unless this is set. */
  readonly keepsUnscored?: boolean;
  /** Leaves out the second and later trajectories with the same task and messages. */
  readonly isDeduplicated?: boolean;
  /** Keeps the best so many of each group, of those that all other filters keep; of equal ones the first. */
  readonly bestOfGroup?: number;
  /** Keeps at most so many of each task. */
  readonly perTask?: number;
  /** Limit of the longest prompt with its answer. A trajectory of which that is not known is left out. */
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
  read: () => AsyncIterable<Sample>,
  options: FilterOptions,
  onEnd: (counts: Filtered) => void = () => {},
): AsyncGenerator<Sample> {
  const survey = await surveyOf(read, options);
  const dropped: Partial<Record<Dropped, number>> = {};
  const seen = new Set<string>();
  const ofTask = new Map<string, number>();
  let kept = 0;
  for await (const one of read()) {
    const reason = reasonOfItsOwn(one, options) ?? reasonOfTask(one, options, survey) ?? reasonOfOthers(one, options, seen, survey, ofTask);
    if (reason !== null) {
      dropped[reason] = (dropped[reason] ?? 0) + 1;
      continue;
    }
    kept++;
    yield one;
  }
  onEnd({ kept, dropped });
}

function reasonOfItsOwn(one: Sample, options: FilterOptions): Dropped | null {
  const { outcome, messages } = one;
  const { minReward, maxReward, keepsUnscored = false, maxTokens, maxMessages } = options;
  if (outcome.kind === "unscored" && !keepsUnscored) return "unscored";
  if (outcome.kind === "scored" && minReward !== undefined && outcome.reward < minReward) return "reward";
  if (outcome.kind === "scored" && maxReward !== undefined && outcome.reward > maxReward) return "reward";
  if (maxTokens !== undefined && lengthOf(one) > maxTokens) return "length";
  const longest = Math.max(messages.length, ...Object.values(one.roles ?? {}).map((role) => role.messages.length));
  return maxMessages !== undefined && longest > maxMessages ? "length" : null;
}

function reasonOfTask(one: Sample, { passRate }: FilterOptions, { passRates }: Survey): Dropped | null {
  if (passRate === undefined || one.outcome.kind === "unscored") return null;
  const rate = passRates.get(taskOf(one));
  return rate === undefined || rate < passRate[0] || rate > passRate[1] ? "pass rate" : null;
}

/** The reasons that depend on the other trajectories of the group or the task. */
function reasonOfOthers(
  one: Sample,
  options: FilterOptions,
  seen: Set<string>,
  { best }: Survey,
  ofTask: Map<string, number>,
): Dropped | null {
  if (isDuplicate(one, options, seen)) return "duplicate";
  if (options.bestOfGroup !== undefined && one.outcome.kind === "scored" && !best.has(one.id)) return "not best of group";
  const task = taskOf(one);
  const count = ofTask.get(task) ?? 0;
  if (options.perTask !== undefined && count >= options.perTask) return "task limit";
  ofTask.set(task, count + 1);
  return null;
}

/** A role's part in a task is a task of its own. */
function taskOf({ task, role }: Sample): string {
  return role === undefined ? (task.id ?? "") : ofRole(task.id ?? "", role);
}

function isDuplicate(one: Sample, { isDeduplicated = false }: FilterOptions, seen: Set<string>): boolean {
  if (!isDeduplicated) return false;
  const { messages, roles } = one;
  const content = digestOf([taskOf(one), messages, ...(roles ? Object.values(roles).map((role) => role.messages) : [])]);
  if (seen.has(content)) return true;
  seen.add(content);
  return false;
}

/** Each prompt of an episode repeats the ones before, so the longest counts and not their sum. What is not known may be too long. */
function lengthOf({ turns, usage }: Trajectory): number {
  const length = ({ prompt_tokens, completion_tokens }: Pick<Turn, "prompt_tokens" | "completion_tokens">) =>
    prompt_tokens === null || completion_tokens === null ? Number.POSITIVE_INFINITY : prompt_tokens + completion_tokens;
  return turns.length === 0 ? length(usage) : Math.max(...turns.map(length));
}

async function surveyOf(read: () => AsyncIterable<Sample>, options: FilterOptions): Promise<Survey> {
  const { passRate, bestOfGroup, passReward = 1 } = options;
  const passes = new Map<string, { passed: number; of: number }>();
  const groups = new Map<string, { id: string; reward: number }[]>();
  const seen = new Set<string>();
  if (passRate === undefined && bestOfGroup === undefined) return { passRates: new Map(), best: new Set() };
  for await (const one of read()) {
    const { id, group, outcome } = one;
    const task = taskOf(one);
    if (outcome.kind === "unscored") continue;
    const count = passes.get(task) ?? { passed: 0, of: 0 };
    passes.set(task, { passed: count.passed + (outcome.reward >= passReward ? 1 : 0), of: count.of + 1 });
    if (reasonOfItsOwn(one, options) !== null || isDuplicate(one, options, seen)) continue;
    const key = group?.id ?? id;
    groups.set(key, [...(groups.get(key) ?? []), { id, reward: outcome.reward }]);
  }
  const best = [...groups.values()].flatMap((group) => group.sort((a, b) => b.reward - a.reward).slice(0, bestOfGroup));
  return {
    passRates: new Map([...passes].map(([task, { passed, of }]) => [task, passed / of])),
    best: new Set(best.map(({ id }) => id)),
  };
}
