import type { KubernetesObject, ObjectMeta } from "../api/client.ts";

/** The parts of a pod that are used. Others, which templates may have, are kept as they are. */
export interface Pod extends KubernetesObject {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Volume[];
  readonly securityContext?: Fields;
  readonly runtimeClassName?: string;
  readonly nodeName?: string;
  readonly restartPolicy?: string;
  readonly [field: string]: unknown;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly imagePullPolicy?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly resources?: { readonly limits?: Quantities; readonly requests?: Quantities };
  readonly volumeMounts?: readonly VolumeMount[];
  readonly ports?: readonly Fields[];
  readonly securityContext?: Fields;
  readonly readinessProbe?: Fields;
  readonly livenessProbe?: Fields;
  readonly [field: string]: unknown;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: Fields;
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly [field: string]: unknown;
}

export interface Volume {
  readonly name: string;
  readonly [field: string]: unknown;
}

export type Quantities = Readonly<Record<string, string>>;
export type Fields = Readonly<Record<string, unknown>>;

export interface PodStatus {
  readonly phase?: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  readonly podIP?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly PodCondition[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

export interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly restartCount?: number;
  readonly lastState?: { readonly terminated?: Terminated };
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: { readonly startedAt?: string };
    readonly terminated?: Terminated;
  };
}

export interface Terminated {
  readonly exitCode: number;
  readonly reason?: string;
  readonly message?: string;
  readonly signal?: number;
}
