import { parseDuration } from "@aenv/contract";
import { ModelHttp } from "@aenv/rollout";
import type { TrainerServices, TrainerServicesOptions } from "@aenv/server/trainer-services";
import { Loopback } from "./loopback/loopback.ts";
import { OpenEnv } from "./openenv/openenv.ts";
import { openEnvRows } from "./openenv/row.ts";
import { modelCaller } from "./rollouts/model-caller.ts";
import { openRollouts } from "./rollouts/open.ts";
import { rolloutRoutes } from "./rollouts/routes.ts";
import { sessionRoutes } from "./sessions/routes.ts";
import { sessionRows } from "./sessions/row.ts";
import { Sessions } from "./sessions/sessions.ts";
import { Tasks } from "./sessions/tasks.ts";

const MODEL_RETRIES = 3;
const MODEL_TIMEOUT_MS = 10 * 60_000;

/** Puts together what plays episodes for trainers: sessions, rollouts and OpenEnv. In all of them the server acts as the caller. */
export function openTrainerServices(options: TrainerServicesOptions): TrainerServices {
  const { config, lifecycle, store, hub, access, delegates, quotas, modelPolicy, ownUrls, now, logFailure } = options;
  const loopback = new Loopback(delegates, ownUrls);
  const tasks = new Tasks({ hub, loopback, now });
  const sessions = new Sessions({ rows: sessionRows(store), hub, loopback, tasks, now });
  const http = new ModelHttp({ retries: MODEL_RETRIES, timeoutMs: MODEL_TIMEOUT_MS, lookup: modelPolicy.lookup });
  const rollouts = openRollouts({
    ...options,
    http,
    loopback,
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
  for (const one of [rollouts, sessions, openenv]) lifecycle.addSweep(() => one.sweep());
  lifecycle.every({
    work: () => rollouts.tidy(),
    everyMs: parseDuration(config.round),
    failure: "a round of the rollouts failed",
    isFirstAtOnce: true,
  });
  lifecycle.on("refuse", async () => {
    await openenv.close();
    sessions.close();
  });
  lifecycle.on("stop", () => rollouts.close());
  return {
    routes: [...rolloutRoutes({ rollouts }), ...sessionRoutes({ sessions, tasks })],
    openenv,
    callModel: modelCaller(http),
    running: () => rollouts.running,
  };
}
