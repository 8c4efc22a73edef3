export { type BaseRoot, type BaseRootOptions, openBaseRoot } from "./base-root/base-root.ts";
export { baseRunnerCommand } from "./base-root/files.ts";
export { DockerEngine } from "./docker/engine.ts";
export type { DockerEngineOptions } from "./docker/options.ts";
export { probeDocker, probeDockerEgress } from "./docker/probes.ts";
export type { Architecture } from "./engine/architecture.ts";
export {
  type CommandDefaults,
  type EngineAbilities,
  type EngineDisks,
  type EngineEgress,
  type EngineSnapshots,
  type ExportedSnapshot,
  type FolderMount,
  type HostEntry,
  type Listening,
  type MemoryFolder,
  noAbilities,
  type ReachedLimit,
  type RefusedConnection,
  type Sandbox,
  type SandboxAddress,
  type SandboxEngine,
  type SandboxExit,
  type SandboxNetwork,
  type SandboxPorts,
  type SandboxProgram,
  type SandboxRuntime,
  type SandboxSnapshot,
  type SandboxSnapshots,
  type SandboxSpec,
  type SandboxSubject,
  type SecondContainer,
  type SnapshotDescription,
  type SnapshotFidelity,
  type SnapshotPart,
} from "./engine/engine.ts";
export type { EngineHost, EngineKind, EngineVariant, ImageAccess, ImageStore, OpenEngine } from "./engine/kind.ts";
export type {
  SeenServices,
  ServiceEngine,
  ServiceReplica,
  ServiceResources,
  ServiceSpec,
  ServiceStatus,
  ServiceStorage,
} from "./engine/service.ts";
export { DEFAULT_ENGINE, type EngineName, engineNames, engines } from "./engines.ts";
export { type ProbeResult, probeProgram, probeUserNamespaces } from "./host/probe.ts";
export { identityOf, isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "./host/process-table.ts";
export type { LayerStore } from "./images/layers.ts";
export { imageName, isRegistryReference } from "./images/reference.ts";
export type { UnpackLimits } from "./images/unpack/limits.ts";
export {
  connectInit,
  type InitConnection,
  type InitHello,
  type InitStats,
  type ListedProcess,
  type ListeningPort,
  type RestoreReport,
} from "./init/connection.ts";
export { InitError, isInitError } from "./init/error.ts";
export type { Bytes, ExactFileInfo, FileChange, FileInfo, InitFiles, Place } from "./init/files.ts";
export { initKeyArgument, openInitKey } from "./init/key.ts";
export type { ProcessOutput, RemoteProcess, SpawnOptions, TerminalSize } from "./init/process.ts";
export { type InitProgramOptions, initProgram } from "./init/program.ts";
export { connectStartingInit } from "./init/ready.ts";
export { accessInCluster, type ClusterAccess, parseKubeconfig, readKubeconfig } from "./kubernetes/api/access.ts";
export { type ApiCounters, KubernetesApi, type KubernetesObject } from "./kubernetes/api/client.ts";
export { isKubernetesError, KubernetesError } from "./kubernetes/api/error.ts";
export { KubernetesEngine } from "./kubernetes/engine.ts";
export { NO_EGRESS } from "./kubernetes/network.ts";
export { clusterAccess } from "./kubernetes/open.ts";
export type { KubernetesEngineOptions } from "./kubernetes/options.ts";
export { type PodTemplates, readTemplates } from "./kubernetes/pod/templates.ts";
export { type ClusterProbe, probeCluster, type RefusedRight, refusedRights } from "./kubernetes/probe.ts";
export { listQuotas, type Quota, roomIn } from "./kubernetes/quota.ts";
export { type RightsRule, requiredRights } from "./kubernetes/rights.ts";
export { readServiceTemplates, type ServiceTemplates } from "./kubernetes/service/templates.ts";
export { waitUntilReady } from "./lifecycle/readiness.ts";
export { MemoryEngine, type MemoryEngineOptions, type MemoryListener, type MemoryProgram } from "./memory/engine.ts";
export type { MemorySandbox } from "./memory/sandbox.ts";
export { probeNetwork, probeSubnet } from "./network/probes.ts";
export type { RootFiles } from "./oci/container.ts";
export { OciEngine } from "./oci/engine.ts";
export type { OciEngineOptions } from "./oci/options.ts";
export { probeControlGroups, probeOverlay, probeOwnUsers, probeSandbox } from "./oci/probes.ts";
export { describeCut } from "./oci/snapshots/connections.ts";
export { type Budget, type Share, share } from "./pool/share.ts";
export { type WarmFailure, type WarmKind, WarmPool } from "./pool/warm-pool.ts";
export { ProcessEngine, type ProcessEngineOptions } from "./process/engine.ts";
export { PortReservations } from "./process/port-reservations.ts";
export { type CapabilityLimit, capabilitiesRefused } from "./spec/capabilities.ts";
export { isReadyStatus, tellAddress } from "./spec/listening.ts";
