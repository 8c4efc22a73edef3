import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { imageLoader, kubeconfigPath } from "./components.ts";

const TIMEOUT_MS = 120_000;
const ARCHIVE_TIMEOUT_MS = 300_000;

/** Puts the files of a folder on the nodes of the cluster for tests, as an image with this program. For suites that need `kubernetes`. */
export async function loadClusterImage(name: string, folder: string, command: readonly string[] = []): Promise<void> {
  const loader = imageLoader();
  if (loader === null) throw new Error("no program loads images into the cluster");
  await promisify(execFile)(loader, [name, folder, ...command], {
    timeout: TIMEOUT_MS,
    env: { ...process.env, KUBECONFIG: kubeconfigPath() ?? "" },
  });
}

/** Puts the images of an archive of `docker save` there, under the names that it has. */
export async function loadClusterArchive(archive: string): Promise<void> {
  const loader = imageLoader();
  if (loader === null) throw new Error("no program loads images into the cluster");
  await promisify(execFile)(loader, [archive], {
    timeout: ARCHIVE_TIMEOUT_MS,
    env: { ...process.env, KUBECONFIG: kubeconfigPath() ?? "" },
  });
}
