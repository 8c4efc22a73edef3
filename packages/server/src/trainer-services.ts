import { parseDuration } from "@aenv/contract";
import type { Access } from "./access/access.ts";
import type { Quotas } from "./access/quotas.ts";
import { OpenEnv } from "./openenv/openenv.ts";
import { openEnvRows } from "./openenv/row.ts";
import { type OpenRolloutsOptions, openRollouts } from "./rollouts/open.ts";
import { sessionRows } from "./sessions/row.ts";
import { Sessions } from "./sessions/sessions.ts";
import { Tasks } from "./sessions/tasks.ts";

export interface TrainerServicesOptions extends Omit<OpenRolloutsOptions, "onFailure" | "access"> {
  readonly access: Access;
  readonly quotas: Quotas;
  readonly logFailure: (message: string) => (error: unknown) => void;
}

/** Puts together what plays episodes for trainers: sessions, rollouts and OpenEnv. In all of them the server acts as the caller. */
export function openTrainerServices({ access, quotas, logFailure, ...options }: TrainerServicesOptions) {
  const { config, store, hub, loopback, now } = options;
  const tasks = new Tasks({ hub, loopback, now });
  const sessions = new Sessions({ rows: sessionRows(store), hub, loopback, tasks, now });
  const rollouts = openRollouts({
    ...options,
    access,
    onFailure: logFailure("a rollout could not be played or stored; it is tried again"),
  });
  const openenv = new OpenEnv({
    rows: openEnvRows(store),
    now,
    hub,
    access,
    sessions,
    tasks,
    limitOf: (caller) => caller.maxInstances ?? quotas.instanceLimit(caller.owner),
    bodyTimeoutMs: parseDuration(config.bodyTimeout),
    monotonicMs: () => performance.now(),
    onFailure: logFailure("a request of the OpenEnv protocol failed unexpectedly"),
  });
  return { tasks, sessions, rollouts, openenv };
}
