import type { KubernetesObject, ObjectMeta } from "../api/client.ts";
import type { Fields, Pod } from "../pod/types.ts";

/** The parts of these objects that are used. Others, which templates may have, are kept as they are. */
export interface Deployment extends KubernetesObject {
  readonly metadata: ObjectMeta & { readonly generation?: number };
  readonly spec: {
    readonly replicas?: number;
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: { readonly metadata: Omit<ObjectMeta, "name">; readonly spec: Pod["spec"] };
    readonly [field: string]: unknown;
  };
  readonly status?: DeploymentStatus;
}

export interface DeploymentStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly updatedReplicas?: number;
  readonly availableReplicas?: number;
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string; readonly message?: string }[];
}

export interface Service extends KubernetesObject {
  readonly spec: {
    readonly selector: Readonly<Record<string, string>>;
    readonly ports: readonly Fields[];
    readonly [field: string]: unknown;
  };
}

export interface Claim extends KubernetesObject {
  readonly spec: { readonly resources?: { readonly requests?: Readonly<Record<string, string>> }; readonly [field: string]: unknown };
}

/** The objects of one service. */
export interface ServiceObjects {
  readonly deployment: Deployment;
  readonly service: Service;
  readonly claim: Claim | null;
}

/** Those that exist. */
export interface SeenObjects {
  readonly deployment: Deployment | null;
  readonly service: Service | null;
  readonly claim: Claim | null;
}
