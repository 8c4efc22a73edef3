import type { Share } from "../../pool/share.ts";
import type { WarmKind } from "../../pool/warm-pool.ts";
import { endOf, progressOf } from "../pod/progress.ts";
import type { Pod } from "../pod/types.ts";

export interface PoolLimits {
  /** Least pods of each kind that is in use. */
  readonly min: number;
  /** Most pods of each kind, however much it is in use. */
  readonly max: number;
  /** Most pods of all kinds together. */
  readonly total: number;
  /** A kind that no sandbox was made of in this time has no waiting pods. */
  readonly idleMs: number;
}

/** How long a new pod takes until its init answers, at most in most clusters: as many pods wait as are needed in this time. */
const REPLACE_MS = 5_000;

/** How many pods of each kind should wait. Kinds in use most have theirs first, if there is no room for all. */
export function stepsOf(
  kinds: readonly Pick<WarmKind<unknown, unknown>, "name" | "demand">[],
  { min, max, idleMs }: PoolLimits,
  now: number,
): readonly (readonly Share[])[] {
  return kinds
    .toSorted((one, other) => other.demand.perSecond(now) - one.demand.perSecond(now))
    .map(({ name, demand }) => {
      const wanted = Math.min(max, Math.max(min, demand.expected(now, REPLACE_MS, 0.5)));
      return [{ name, upTo: demand.isIdle(now, idleMs) ? 0 : wanted }];
    });
}

/** Whether a waiting pod is of use, now or soon. */
export type Usability = "running" | "starting" | "useless";

export function usabilityOf(pod: Pod, now: number, unschedulableMs: number): Usability {
  if (endOf(pod) !== null) return "useless";
  const { kind } = progressOf(pod, now, unschedulableMs);
  if (kind === "running") return "running";
  return kind === "waiting" ? "starting" : "useless";
}

/** Which of them a sandbox should take: one that runs. `random`: between 0 and 1, so that servers seldom choose the same. */
export function choose(pods: readonly Pod[], now: number, unschedulableMs: number, random: number): Pod | null {
  const by = (wanted: Usability) => pods.filter((pod) => usabilityOf(pod, now, unschedulableMs) === wanted);
  const running = by("running");
  const from = running.length > 0 ? running : by("starting");
  return from[Math.floor(random * from.length)] ?? null;
}

/** Those beyond the target, the newest first, because the oldest are most likely to run. Every server chooses the same. */
export function surplusOf(pods: readonly Pod[], target: number): readonly Pod[] {
  const age = ({ metadata: { creationTimestamp = "", name } }: Pod) => `${creationTimestamp} ${name}`;
  return pods.toSorted((one, other) => (age(one) < age(other) ? -1 : 1)).slice(target);
}
