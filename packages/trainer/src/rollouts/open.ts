import { parseDuration } from "@aenv/contract";
import type { ModelHttp } from "@aenv/rollout";
import type { TrainerServicesOptions } from "@aenv/server/trainer-services";
import type { Loopback } from "../loopback/loopback.ts";
import { RolloutAgents } from "./agents.ts";
import { InstancePools } from "./instance-pools.ts";
import { RolloutPlayer } from "./player.ts";
import { Rollouts } from "./rollouts.ts";
import { requestRows, rolloutRows } from "./row.ts";
import { StoredResults } from "./stored-results.ts";

export interface OpenRolloutsOptions extends Omit<TrainerServicesOptions, "lifecycle" | "delegates" | "quotas" | "ownUrls" | "logFailure"> {
  readonly loopback: Loopback;
  readonly http: ModelHttp;
  readonly onFailure: (error: unknown) => void;
}

/** Puts together what accepts and plays rollouts. */
export function openRollouts(options: OpenRolloutsOptions): Rollouts {
  const {
    config,
    store,
    hub,
    scheduler,
    loopback,
    peers,
    serverId,
    version,
    isAlone,
    access,
    now,
    onDone,
    onFailure,
    modelPolicy: policy,
    http,
  } = options;
  const pools = new InstancePools({ loopback, serverId });
  return new Rollouts({
    rows: rolloutRows(store),
    requests: requestRows(store),
    results: new StoredResults(store),
    scrub: store.scrub?.bind(store),
    hub,
    policy,
    player: new RolloutPlayer({ pools, agents: new RolloutAgents(http, policy), version, now }),
    pools,
    http,
    scheduler,
    serverId,
    isAlone,
    stillValid: (caller) => access.stillValid(caller),
    livingServers: () => peers.livingIds(),
    maxUnfinished: config.maxRollouts,
    maxRequestBytes: config.rolloutRequestBytes,
    keepMs: parseDuration(config.rolloutResultsKept),
    maxBytes: config.rolloutResultBytes,
    maxBytesPerOwner: config.rolloutResultBytesPerOwner,
    now,
    onDone,
    onFailure,
  });
}
