import { PlatformError } from "@aenv/contract";
import { accessInCluster, type ClusterAccess, readKubeconfig } from "@aenv/sandbox";
import type { ServerConfig } from "./config/config.ts";

/** How the engine kubernetes reaches its cluster: by a kubeconfig, or in the cluster as the account of the server's pod. */
export function clusterAccess({ kubeconfig, kubeServer }: Pick<ServerConfig, "kubeconfig" | "kubeServer">): ClusterAccess {
  if (kubeconfig !== null) return readKubeconfig(kubeconfig);
  if (kubeServer === null)
    throw new PlatformError("request.invalid", "the engine kubernetes needs a cluster: name a kubeconfig file with --kubeconfig");
  return accessInCluster(kubeServer);
}
