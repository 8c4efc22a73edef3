import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { imageLoader, kubeconfigPath } from "./components.ts";

const TIMEOUT_MS = 300_000;

/**
 * Puts the files of a folder on the nodes of the cluster for tests, as an image with this program, unless that was done before: the
 * same name stands for the same content. For suites that need `kubernetes`.
 */
export async function loadClusterImage(name: string, write: () => string, command: readonly string[] = []): Promise<void> {
  const loader = imageLoader();
  const kubeconfig = kubeconfigPath();
  if (loader === null || kubeconfig === null) throw new Error("no program loads images into the cluster");
  const folder = join(tmpdir(), `aenv-cluster-images-${digestOf(readFileSync(kubeconfig, "utf8"))}`);
  const done = join(folder, digestOf(name));
  if (existsSync(done)) return;
  mkdirSync(folder, { recursive: true });
  // Imports run one after the other: the nodes refuse two imports of the same layers at a time.
  const args = [join(folder, "lock"), loader, name, write(), ...command];
  await promisify(execFile)("flock", args, { timeout: TIMEOUT_MS, env: { ...process.env, KUBECONFIG: kubeconfig } });
  writeFileSync(done, name);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
