import { randomInt } from "node:crypto";
import {
  type CreateInstanceRequest,
  type EgressPolicy,
  type ForkFidelity,
  type InstanceEvent,
  newInstanceId,
  newKey,
  PlatformError,
  parseDuration,
} from "@aenv/contract";
import { describeCut, type SandboxEngine } from "@aenv/sandbox";
import { imageOf } from "../hub/datasource.ts";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { RequestedModels } from "../models/stored-model.ts";
import { isolationOf } from "../slots/isolation.ts";
import { needsLink } from "../slots/platform-link.ts";
import type { RuntimePolicy } from "../slots/runtimes.ts";
import type { SnapshotRow } from "../snapshots/row.ts";
import { type TaskSandboxLimits, taskPolicyFor } from "../task-sandboxes/policy.ts";
import { egressFor, egressHints } from "./egress.ts";
import { NEVER } from "./expiry.ts";
import type { InstanceRow } from "./row.ts";
import { sandboxOptionsOf, supportedOptions } from "./sandbox-options.ts";

export interface NewRowOptions {
  readonly serverId: string;
  readonly defaultTtl: string;
  readonly defaultIdleSeconds: number | null;
  /** Null: sandboxes are not frozen, unless their environment says so. */
  readonly defaultFreezeSeconds?: number | null;
  readonly engine: Pick<SandboxEngine, "name" | "can" | "egress" | "templates">;
  /** Where sandboxes may connect to at most. */
  readonly egressLimit: EgressPolicy;
  readonly taskLimits: TaskSandboxLimits;
  readonly runtimes: RuntimePolicy;
}

/** The row of a requested instance. `models` are those of its environment and of the request. */
export function newInstanceRow(
  environment: EnvironmentVersion,
  request: CreateInstanceRequest,
  owner: string,
  now: Date,
  {
    serverId,
    defaultTtl,
    defaultIdleSeconds,
    defaultFreezeSeconds = null,
    engine,
    egressLimit,
    taskLimits: limits,
    runtimes,
  }: NewRowOptions,
  models: RequestedModels | null = null,
): InstanceRow {
  const isShared = isolationOf(environment.config) === "shared";
  const runtime = () => runtimes.runtimeOf([environment.owner, owner], environment.config.deployConfig?.runtime);
  const { options, warnings: ignored } = supportedOptions(sandboxOptionsOf(environment.config, request), engine, isShared);
  const { egress, warnings: unrestricted } = egressFor(environment, request, { limit: egressLimit, engine, isShared, runtime });
  const image = imageFor(environment, request.datasource ?? "");
  const { policy: taskSandboxes, warnings: unshared } = taskPolicyFor({
    ref: `${environment.name}@${environment.version}`,
    config: environment.config,
    image,
    isShared,
    egress,
    isNarrowed: request.egress !== undefined,
    egressLimit,
    engine,
    limits,
    runtime,
  });
  const warnings = [...ignored, ...unrestricted, ...unshared];
  const own = environment.config.deployConfig?.ttl;
  const ttl = (request.ttlIsFallback === true ? own || request.ttl : request.ttl || own) || defaultTtl;
  const since = now.toISOString();
  return {
    id: newInstanceId(environment.name),
    agentKey: newKey(),
    linkSecret: newKey() + newKey(),
    owner,
    environment: { name: environment.name, version: environment.version },
    digest: environment.bundleDigest ?? "",
    status: "Creating",
    reason: null,
    reasonCode: null,
    createdAt: since,
    updatedAt: since,
    expiresAt: expiryOf(ttl, now),
    ttl,
    idleSeconds: defaultIdleSeconds,
    lastUsedAt: since,
    // A process that is shared has no freezing of its own.
    ...(engine.can.freezes && !isShared && { freezeSeconds: freezeSecondsOf(environment) ?? defaultFreezeSeconds }),
    labels: request.labels ?? {},
    task: request.task ?? null,
    seed: request.seed ?? randomInt(2 ** 31),
    datasource: request.datasource ?? "",
    image,
    slot: null,
    server: serverId,
    group: null,
    events: [
      { at: since, what: "requested" },
      ...warningEvents(warnings, since),
      ...egressHints(engine, egress?.agent, taskSandboxes?.egress).map((what) => ({ at: since, what })),
    ],
    ...(warnings.length > 0 && { warnings }),
    ...(options !== undefined && { sandboxOptions: options }),
    ...(egress !== undefined && { egress }),
    ...(taskSandboxes !== undefined && { taskSandboxes }),
    ...(needsLink(environment, { taskSandboxes, models: models?.stored }) && { platformLink: true }),
    ...(models !== null && { models: models.stored }),
    ...(models !== null && Object.keys(models.held).length > 0 && { heldModels: models.heldId }),
    ...(environment.children.length > 0 && { hasChildren: true }),
  };
}

/** The row of an instance that continues from a stored snapshot, with its task and seed. */
export function asContinued(row: InstanceRow, snapshot: SnapshotRow): InstanceRow {
  const { id, name, fidelity, task, seed, secretVariables, cut } = snapshot;
  const events = [`starts from the snapshot ${name} with its ${fidelity}`, describeCut(cut)].filter((what) => what !== null);
  return {
    ...row,
    task,
    seed,
    startedFrom: { id, name, fidelity },
    ...(secretVariables !== undefined && { secretVariables }),
    events: [...row.events, ...events.map((what) => ({ at: row.createdAt, what }))],
  };
}

/** The row of a service's replica: it does not expire; the service ends it. */
export function asReplica(row: InstanceRow, id: string, service: string): InstanceRow {
  return { ...row, id, service, ttl: "", expiresAt: NEVER, idleSeconds: null };
}

function freezeSecondsOf({ config }: EnvironmentVersion): number | null {
  const own = config.deployConfig?.freezeAfter;
  return own === undefined ? null : parseDuration(own) / 1_000;
}

/** A datasource that is no image name is refused here, not when an engine cannot pull it. */
function imageFor({ config }: EnvironmentVersion, datasource: string): string | null {
  const prefix = config.deployConfig?.imagePrefix;
  return datasource === "" ? null : imageOf(datasource, typeof prefix === "string" ? prefix : undefined);
}

/** The row of a fork, which continues from the state of its parent. */
export function newForkRow(
  parent: InstanceRow,
  id: string,
  {
    group,
    fidelity,
    now,
    serverId,
  }: { readonly group: string | null; readonly fidelity: ForkFidelity; readonly now: Date; readonly serverId: string },
): InstanceRow {
  const since = now.toISOString();
  const { startedFrom: _, ...common } = parent;
  return {
    ...common,
    id,
    agentKey: newKey(),
    linkSecret: newKey() + newKey(),
    status: "Creating",
    createdAt: since,
    updatedAt: since,
    expiresAt: expiryOf(parent.ttl, now),
    lastUsedAt: since,
    isFrozen: false,
    slot: null,
    server: serverId,
    group,
    forkFidelity: fidelity,
    events: [
      { at: since, what: `forked from ${parent.id}${fidelity === "state" ? "" : ` with its ${fidelity}`}` },
      ...warningEvents(parent.warnings ?? [], since),
    ],
  };
}

function warningEvents(warnings: readonly string[], at: string): InstanceEvent[] {
  return warnings.map((warning) => ({ at, what: `warning: ${warning}` }));
}

export function expiryOf(ttl: string, now: Date): string {
  const ms = parseDuration(ttl);
  if (ms > 0) return new Date(now.getTime() + ms).toISOString();
  throw new PlatformError("request.invalid", `ttl is '${ttl}'; it must be longer than zero, for example 30m`);
}
