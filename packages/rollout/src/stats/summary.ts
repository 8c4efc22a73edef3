import type { Trajectory, UnscoredCause } from "@aenv/contract";
import { costOfAttempts, tokensOfAttempts } from "./earlier-attempts.ts";
import { type MeanWithInterval, meanOfGroups } from "./mean.ts";
import { passAtK, passHatK } from "./pass.ts";

/** What a summary keeps of one episode; little, so that a run of any size fits into memory. */
export interface EpisodeScore {
  readonly task: string;
  /** Null if it is unscored. */
  readonly reward: number | null;
  readonly cause: UnscoredCause | null;
  /** The parts of the reward, by name; empty if it is unscored. */
  readonly components: Readonly<Record<string, number>>;
  /** How it ended for each role; absent in an environment without roles. */
  readonly roles?: readonly RoleScore[];
  /** Cost of all attempts; null where it is not known. */
  readonly cost: number | null;
  /** Tokens that the model read and wrote, in all attempts. */
  readonly tokens: number;
  readonly totalMs: number;
}

export interface RoleScore {
  readonly role: string;
  /** The role for which the player was given. */
  readonly player: string;
  /** Null if it is unscored. */
  readonly reward: number | null;
  readonly hasForfeited: boolean;
}

export interface TaskSummary {
  readonly task: string;
  readonly episodes: number;
  readonly scored: number;
  readonly mean: number | null;
  readonly deviation: number | null;
  readonly passes: number;
}

export interface RunSummary {
  readonly episodes: number;
  readonly scored: number;
  readonly unscored: Readonly<Partial<Record<UnscoredCause, number>>>;
  readonly reward: MeanWithInterval | null;
  /** The parts of the reward, by name. Absent in summaries that earlier versions wrote. */
  readonly components?: Readonly<Record<string, ComponentSummary>>;
  /** What each role got, if the environment has roles. */
  readonly roles?: Readonly<Record<string, RoleSummary>>;
  /** What each player got in whatever role it played, if players exchanged their roles. */
  readonly players?: Readonly<Record<string, RoleSummary>>;
  /** Estimates by k: 1 to 16, powers of two, and the largest. Each is over the tasks that have at least k scored samples, whose number is given. */
  readonly passAtK: Readonly<Record<number, PassEstimate>>;
  readonly passHatK: Readonly<Record<number, PassEstimate>>;
  /** Cost of all episodes, unscored ones too: they were paid for. Null if no cost is known. */
  readonly cost: CostSummary | null;
  /** How long scored episodes took, from start to score; null if none was scored. */
  readonly seconds: { readonly median: number; readonly p95: number } | null;
  readonly tasks: readonly TaskSummary[];
}

export interface RoleSummary {
  readonly episodes: number;
  readonly scored: number;
  readonly forfeited: number;
  readonly reward: MeanWithInterval | null;
}

export interface ComponentSummary {
  readonly mean: number;
  /** How many scored episodes report it; the mean is theirs. */
  readonly episodes: number;
}

export interface CostSummary {
  readonly total: number;
  /** How many episodes have a known cost; the total is theirs. */
  readonly episodes: number;
  /** Null if no episode passed. */
  readonly perPass: number | null;
}

export interface PassEstimate {
  readonly value: number;
  readonly tasks: number;
}

export interface SummaryOptions {
  /** A reward of at least this counts as passed. */
  readonly passReward: number;
}

/** What an episode adds to a summary. */
export function scoreOf(
  episode: Pick<Trajectory, "task" | "outcome" | "roles" | "usage" | "cost" | "earlier_attempts" | "timing">,
): EpisodeScore {
  const { task, outcome, roles, timing } = episode;
  return {
    task: task.id ?? "",
    reward: outcome.kind === "scored" ? outcome.reward : null,
    cause: outcome.kind === "scored" ? null : outcome.cause,
    components: outcome.kind === "scored" ? outcome.components : {},
    ...(roles && {
      roles: Object.entries(roles).map(([role, { player, outcome: own, forfeit }]) => ({
        role,
        player,
        reward: own.kind === "scored" ? own.reward : null,
        hasForfeited: forfeit !== undefined,
      })),
    }),
    cost: costOfAttempts(episode),
    tokens: tokensOfAttempts(episode),
    totalMs: timing.total_ms,
  };
}

/** The numbers of a run. Unscored episodes are counted by cause and left out of everything else. */
export function summarise(scores: readonly EpisodeScore[], { passReward }: SummaryOptions): RunSummary {
  // Tasks are sorted by name, and numbers in it by value: episodes end in any order, and the same run has the same summary.
  const byTask = new Map([...Map.groupBy(scores, ({ task }) => task)].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })));
  // Sorted, because a sum of floats depends on its order.
  const rewards = [...byTask.values()].map((own) => own.flatMap(({ reward }) => (reward === null ? [] : [reward])).sort((a, b) => a - b));
  const counts = rewards
    .filter((own) => own.length > 0)
    .map((own) => ({ samples: own.length, passes: own.filter((one) => one >= passReward).length }));
  const unscored: Partial<Record<UnscoredCause, number>> = {};
  for (const { cause } of scores) if (cause !== null) unscored[cause] = (unscored[cause] ?? 0) + 1;
  const most = Math.max(0, ...counts.map(({ samples }) => samples));
  return {
    episodes: scores.length,
    scored: scores.filter(({ reward }) => reward !== null).length,
    unscored,
    reward: meanOfGroups(rewards),
    components: componentsOf(scores),
    ...rolesOf(byTask),
    passAtK: estimates(counts, most, passAtK),
    passHatK: estimates(counts, most, passHatK),
    cost: costSummary(scores, passReward),
    seconds: durations(scores),
    tasks: [...byTask].map(([task, own], at) => taskSummary(task, own.length, rewards[at] ?? [], passReward)),
  };
}

/** An environment chooses the names, so it could choose a new one for each episode. */
const MAX_COMPONENTS = 100;

function componentsOf(scores: readonly EpisodeScore[]): Record<string, ComponentSummary> {
  const values = new Map<string, number[]>();
  for (const { components } of scores) {
    for (const [name, value] of Object.entries(components)) {
      const own = values.get(name);
      if (own === undefined) values.set(name, [value]);
      else own.push(value);
    }
  }
  const named = [...values].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })).slice(0, MAX_COMPONENTS);
  return Object.fromEntries(named.map(([name, own]) => [name, { mean: sum(own) / own.length, episodes: own.length }]));
}

/** The numbers of each role, and those of each player if a player has played several roles. */
function rolesOf(byTask: ReadonlyMap<string, readonly EpisodeScore[]>): Pick<RunSummary, "roles" | "players"> {
  const all = [...byTask].flatMap(([task, own]) => own.flatMap(({ roles = [] }) => roles.map((one) => ({ ...one, task }))));
  if (all.length === 0) return {};
  const summaries = (by: "role" | "player") =>
    Object.fromEntries(
      [...Map.groupBy(all, (one) => one[by])].map(([name, own]): [string, RoleSummary] => [
        name,
        {
          episodes: own.length,
          scored: own.filter(({ reward }) => reward !== null).length,
          forfeited: own.filter(({ hasForfeited }) => hasForfeited).length,
          reward: meanOfGroups(
            [...Map.groupBy(own, ({ task }) => task).values()].map((ofTask) =>
              ofTask.flatMap(({ reward }) => (reward === null ? [] : [reward])).sort((a, b) => a - b),
            ),
          ),
        },
      ]),
    );
  const isExchanged = all.some(({ role, player }) => role !== player);
  return { roles: summaries("role"), ...(isExchanged && { players: summaries("player") }) };
}

/** Sorts the values, because a sum of floats depends on its order. */
function sum(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b).reduce((total, value) => total + value, 0);
}

function costSummary(scores: readonly EpisodeScore[], passReward: number): CostSummary | null {
  const known = scores.filter(({ cost }) => cost !== null);
  if (known.length === 0) return null;
  const total = known.reduce((sum, { cost }) => sum + (cost ?? 0), 0);
  const passes = known.filter(({ reward }) => reward !== null && reward >= passReward).length;
  return { total, episodes: known.length, perPass: passes === 0 ? null : total / passes };
}

function durations(scores: readonly EpisodeScore[]): RunSummary["seconds"] {
  const sorted = scores.flatMap(({ reward, totalMs }) => (reward === null ? [] : [totalMs / 1_000])).sort((a, b) => a - b);
  // The nearest rank: a value that was measured, never one between two.
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return sorted.length === 0 ? null : { median: rank(0.5), p95: rank(0.95) };
}

function estimates(
  counts: readonly { readonly samples: number; readonly passes: number }[],
  most: number,
  estimate: (samples: number, passes: number, k: number) => number,
): Record<number, PassEstimate> {
  const result: Record<number, PassEstimate> = {};
  for (const k of shownUpTo(most)) {
    const able = counts.filter(({ samples }) => samples >= k);
    result[k] = {
      value: able.reduce((sum, { samples, passes }) => sum + estimate(samples, passes, k), 0) / able.length,
      tasks: able.length,
    };
  }
  return result;
}

/** All up to 16, then powers of two, and the last: an estimate for each of thousands would take longer to compute than to sample. */
function shownUpTo(most: number): number[] {
  const shown: number[] = [];
  for (let k = 1; k < most; k += k < 16 ? 1 : k) shown.push(k);
  return most === 0 ? shown : [...shown, most];
}

function taskSummary(task: string, episodes: number, rewards: readonly number[], passReward: number): TaskSummary {
  const scored = rewards.length;
  const mean = scored === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / scored;
  const deviation =
    mean === null || scored < 2 ? null : Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / (scored - 1));
  return { task, episodes, scored, mean, deviation, passes: rewards.filter((reward) => reward >= passReward).length };
}
