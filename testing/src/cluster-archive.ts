import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { imageLoader, kubeconfigPath } from "./components.ts";

const TIMEOUT_MS = 10 * 60_000;

/** Puts the images of an archive of `docker save` on the nodes of the cluster for tests, under the names that it has. */
export async function loadClusterArchive(archive: string): Promise<void> {
  const loader = imageLoader();
  if (loader === null) throw new Error("no program loads images into the cluster");
  // Imports run one after the other: a node refuses two imports of the same layers at a time.
  const args = [`${archive}.lock`, loader, archive];
  await promisify(execFile)("flock", args, { timeout: TIMEOUT_MS, env: { ...process.env, KUBECONFIG: kubeconfigPath() ?? "" } });
}
