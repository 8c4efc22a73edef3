import { limitNames, PlatformError } from "@aenv/contract";
import { type EngineAbilities, noAbilities, type ReachedLimit, type SandboxRuntime } from "../engine/engine.ts";
import type { RegistryPolicyOptions } from "../registry/policy.ts";
import type { ClusterAccess } from "./api/access.ts";
import { isLabelName } from "./pod/names.ts";
import type { PodTemplates } from "./pod/templates.ts";
import type { PoolLimits } from "./pool/plan.ts";
import type { ServiceTemplates } from "./service/templates.ts";
import { REFUSALS } from "./validate.ts";

export interface KubernetesEngineOptions extends RegistryPolicyOptions {
  /** Holds the key of inits and the name of this home. */
  readonly home: string;
  readonly access: ClusterAccess;
  readonly namespace: string;
  /** The image of sandboxes without one. It has the init, Node and the runner in /opt/aenv. */
  readonly baseImage: string;
  readonly templates?: PodTemplates;
  readonly serviceTemplates?: ServiceTemplates;
  /** What follows the namespace in the names of services; default: `svc.cluster.local`. */
  readonly domainSuffix?: string;
  /** Servers with the same name look after the same pods; default: a random name of this home. */
  readonly group?: string;
  /** The private key that proves to inits who connects; default: that of the home. */
  readonly initKeyFile?: string;
  /** Restrict the outgoing connections of sandboxes by a network policy, which the cluster's network must enforce. */
  readonly networkPolicies?: boolean;
  /** The RuntimeClass of sandboxes with runsc; without it, none may ask for it. */
  readonly runscClass?: string;
  /** Runtime of sandboxes whose specification names none; runc is the default of the cluster, whatever that is. */
  readonly runtime?: SandboxRuntime;
  /** Pods that wait for sandboxes; none by default. */
  readonly pool?: PoolLimits & { readonly roundMs?: number };
  /** How long a pod may wait for a node, such as one that an autoscaler adds. */
  readonly unschedulableMs?: number;
  /** Called for limits that a sandbox reached while it went on. */
  readonly onLimit?: (reached: ReachedLimit) => void;
  /** Called with the time from the request to a sandbox that answers. */
  readonly onReady?: (durationMs: number) => void;
  /** Receives warnings about templates. */
  readonly log?: (line: string) => void;
  /** Times of the watch; tests set them. */
  readonly watch?: { readonly relistEveryMs?: number; readonly watchSeconds?: number };
  readonly sweepEveryMs?: number;
}

/** How long a pod may wait for a node, unless the options say otherwise. */
export const UNSCHEDULABLE_MS = 5_000;

/** Throws for options with which no engine can work, with what to do. */
export function assertOptions({ runtime, runscClass }: KubernetesEngineOptions, homeId: string): void {
  if (!isLabelName(homeId))
    throw new PlatformError("request.invalid", `the group of servers '${homeId}' must be up to 63 letters, digits, '.', '_' and '-'`);
  if (runtime === "runsc" && runscClass === undefined)
    throw new PlatformError("request.invalid", "the runtime is runsc: name the cluster's RuntimeClass for it with the setting runscClass");
}

export function abilitiesOf({ runscClass }: KubernetesEngineOptions): EngineAbilities {
  return {
    ...noAbilities,
    images: true,
    isolates: true,
    elsewhere: true,
    // That of its template.
    ownMemory: true,
    findsStrays: true,
    ports: true,
    ownLimits: limitNames.filter((limit) => REFUSALS[limit] === undefined),
    seconds: true,
    runtimes: runscClass === undefined ? [] : ["runc", "runsc"],
  };
}
