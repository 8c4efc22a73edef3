import type { EngineAbilities } from "@aenv/sandbox";
import type { ServerConfig } from "../config/config.ts";
import type { WorkKind, WorkLimits } from "./scheduler.ts";
import { WAITING_VERIFICATIONS } from "./verifier.ts";

export type WorkSettings = Pick<ServerConfig, "startsAtOnce" | "verifications" | "verificationsPerOwner" | "rolloutsAtOnce" | "poolMax">;

/** How much work of each kind this server does at the same time. */
export function workLimits(
  config: WorkSettings,
  { elsewhere }: Pick<EngineAbilities, "elsewhere">,
  cores: number,
): Record<WorkKind, WorkLimits> {
  const { startsAtOnce, poolMax } = config;
  return {
    creations: { atOnce: startsAtOnce, maxWaiting: 50_000 },
    // A parent that starts holds a place of `creations` until its children run, so these do not wait for one: parents that fill all places
    // would wait for children that wait for a place. The processes that children need are limited as all others.
    children: { atOnce: Number.POSITIVE_INFINITY },
    verifications: { atOnce: config.verifications, atOncePerOwner: config.verificationsPerOwner, ...WAITING_VERIFICATIONS },
    // A rollout runs for as long as its model wants, up to a day. So each owner has some places that no other owner can hold.
    rollouts: {
      atOnce: config.rolloutsAtOnce,
      reserve: { places: config.rolloutsAtOnce, perOwner: Math.ceil(config.rolloutsAtOnce / 16) },
    },
    // Images may have to be pulled for them, so they do not take the turns of process starts.
    "task sandboxes": { atOnce: elsewhere ? startsAtOnce : 4 * cores },
    "process starts": elsewhere
      ? // What starts on another machine is little more than waiting here, such as for an image.
        { atOnce: startsAtOnce, aheadAtOnce: Math.max(1, Math.min(poolMax, startsAtOnce)) }
      : // A start is mostly CPU work with some waiting, so two per core. One at a time ahead of need, to leave the cores to calls.
        { atOnce: 2 * cores, aheadAtOnce: 1 },
  };
}
