import { PlatformError, parseDuration } from "@aenv/contract";
import type { SandboxRuntime } from "../engine/engine.ts";
import type { EngineHost } from "../engine/kind.ts";
import { accessInCluster, type ClusterAccess, readKubeconfig } from "./api/access.ts";
import { KubernetesEngine } from "./engine.ts";
import { readTemplates } from "./pod/templates.ts";
import { readServiceTemplates } from "./service/templates.ts";

/** The settings of the server that say how the cluster is reached. */
export interface ClusterSettings {
  readonly kubeconfig: string | null;
  readonly kubeServer: string | null;
}

/** The settings of the server that the engine depends on. */
export interface KubernetesServerSettings extends ClusterSettings {
  readonly home: string;
  readonly baseImage: string | null;
  readonly podTemplates: string | null;
  readonly kubeNamespace: string;
  readonly kubeGroup: string | null;
  readonly kubeNetworkPolicies: boolean;
  readonly kubeDomainSuffix: string;
  readonly initKeyFile: string | null;
  readonly runscClass: string | null;
  readonly runtime: SandboxRuntime;
  readonly processes: number | null;
  readonly imageRegistries: readonly string[];
  readonly insecureRegistries: readonly string[];
  /** A duration. */
  readonly nodeWait: string;
  readonly sandboxesReady: number;
  readonly poolMax: number;
  readonly poolTotal: number;
}

/** Images that no sandbox was started from for so long have no waiting pods. */
const POOL_IDLE_MS = 5 * 60_000;

export function openKubernetes(settings: KubernetesServerSettings, { log, onLimit, onReady }: EngineHost): KubernetesEngine {
  const { home, baseImage, podTemplates, kubeGroup, kubeNetworkPolicies, initKeyFile, runscClass, runtime, processes } = settings;
  if (baseImage === null)
    throw new PlatformError(
      "request.invalid",
      "the engine kubernetes needs an image for environments without one: build it as deploy/images describes, and name it with --base-image",
    );
  if (processes !== null)
    throw new PlatformError(
      "request.invalid",
      `the setting processes is ${processes}, and the engine kubernetes cannot limit that: set podPidsLimit of the nodes' kubelets, and remove the setting`,
    );
  return new KubernetesEngine({
    home,
    access: clusterAccess(settings),
    namespace: settings.kubeNamespace,
    baseImage,
    imageRegistries: settings.imageRegistries,
    insecureRegistries: settings.insecureRegistries,
    templates: readTemplates(podTemplates),
    serviceTemplates: readServiceTemplates(podTemplates),
    domainSuffix: settings.kubeDomainSuffix,
    networkPolicies: kubeNetworkPolicies,
    runtime,
    unschedulableMs: parseDuration(settings.nodeWait),
    pool: { min: settings.sandboxesReady, max: podPoolMax(settings), total: settings.poolTotal, idleMs: POOL_IDLE_MS },
    log,
    onLimit,
    ...(onReady !== undefined && { onReady }),
    ...(kubeGroup !== null && { group: kubeGroup }),
    ...(initKeyFile !== null && { initKeyFile }),
    ...(runscClass !== null && { runscClass }),
  });
}

/** Access by a kubeconfig, or in the cluster as the account of the server's pod. */
export function clusterAccess({ kubeconfig, kubeServer }: ClusterSettings): ClusterAccess {
  if (kubeconfig !== null) return readKubeconfig(kubeconfig);
  if (kubeServer === null)
    throw new PlatformError("request.invalid", "the engine kubernetes needs a cluster: name a kubeconfig file with --kubeconfig");
  return accessInCluster(kubeServer);
}

/** Without pods that wait when nothing is in use, none waits at all. */
function podPoolMax({ sandboxesReady, poolMax }: KubernetesServerSettings): number {
  return sandboxesReady === 0 ? 0 : Math.max(sandboxesReady, poolMax);
}
