import { isLoopback, type Outcome, parseDuration } from "@aenv/contract";
import { ModelHttp } from "@aenv/rollout";
import type { Access } from "../access/access.ts";
import type { ServerConfig } from "../config/config.ts";
import type { Hub } from "../hub/hub.ts";
import type { Loopback } from "../loopback/loopback.ts";
import type { Peers } from "../peers/peers.ts";
import type { Scheduler } from "../slots/scheduler.ts";
import type { Store } from "../stores/store.ts";
import { RolloutAgents } from "./agents.ts";
import { InstancePools } from "./instance-pools.ts";
import { defaultModels, ModelPolicy } from "./model-policy.ts";
import { RolloutPlayer } from "./player.ts";
import { Rollouts } from "./rollouts.ts";
import { requestRows, rolloutRows } from "./row.ts";
import { StoredResults } from "./stored-results.ts";

export interface OpenRolloutsOptions {
  readonly config: ServerConfig;
  readonly store: Store;
  readonly hub: Hub;
  readonly scheduler: Scheduler;
  readonly loopback: Loopback;
  readonly peers: Peers;
  readonly serverId: string;
  readonly version: string;
  readonly isAlone: boolean;
  readonly access: Pick<Access, "stillValid">;
  readonly ownPorts: () => readonly number[];
  readonly now: () => Date;
  readonly onDone: (outcome: Outcome) => void;
  readonly onFailure: (error: unknown) => void;
}

const MODEL_RETRIES = 3;
const MODEL_TIMEOUT_MS = 10 * 60_000;

/** Puts together what accepts and plays rollouts. */
export function openRollouts(options: OpenRolloutsOptions): Rollouts {
  const { config, store, hub, scheduler, loopback, peers, serverId, version, isAlone, access, ownPorts, now, onDone, onFailure } = options;
  const entries = config.rolloutModels.length > 0 ? config.rolloutModels : defaultModels(!isLoopback(config.host));
  const policy = new ModelPolicy(entries, ownPorts);
  const http = new ModelHttp({ retries: MODEL_RETRIES, timeoutMs: MODEL_TIMEOUT_MS, lookup: policy.lookup });
  const pools = new InstancePools({ loopback, serverVersion: version, serverId });
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
