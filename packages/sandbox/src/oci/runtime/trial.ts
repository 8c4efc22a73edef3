import { generateKeyPairSync, randomBytes } from "node:crypto";
import { chmod, chown, mkdir, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Architecture } from "../../engine/architecture.ts";
import { initKeyArgument } from "../../init/key.ts";
import { initProgram } from "../../init/program.ts";
import { ControlGroup, findHierarchy } from "../cgroups/group.ts";
import { foldersOf } from "../cgroups/hierarchy.ts";
import { ociConfig } from "../config.ts";
import type { UserMapping } from "../overlay/mapped.ts";
import type { OciRuntime } from "./runtime.ts";

const TIMEOUT_MS = 20_000;

export interface TrialOptions {
  /** A new folder of the caller. */
  readonly folder: string;
  /** The control group; absent: one that only this trial uses. */
  readonly groupPath?: string | undefined;
  readonly userMapping?: UserMapping;
}

/** Starts the init in an empty sandbox, and removes the sandbox. Returns how long the start took. Throws if it fails. */
export async function tryRuntime(runtime: OciRuntime, { folder, userMapping, ...options }: TrialOptions): Promise<number> {
  const architecture = process.arch as Architecture;
  const groupPath = options.groupPath ?? `/aenv-probe-${randomBytes(6).toString("hex")}/one`;
  const rootPath = join(folder, "root");
  const config = ociConfig({
    runtime: runtime.name,
    architecture,
    hostname: "probe",
    rootPath,
    initPath: await initProgram(architecture),
    initArguments: ["--listen", "unix:/socket", "--key", initKeyArgument(generateKeyPairSync("ed25519").privateKey)],
    networkNamespace: null,
    userMapping: userMapping ?? null,
    mounts: [],
    resources: {},
    groupPath,
  });
  await mkdir(rootPath);
  if (userMapping !== undefined) {
    // Root of the sandbox is another user here, which must get to its files.
    await chmod(folder, 0o711);
    await chown(rootPath, userMapping.hostId, userMapping.hostId);
  }
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  const id = `aenv-probe-${randomBytes(6).toString("hex")}`;
  const started = performance.now();
  try {
    await runtime.run(id, folder, { logPath: join(folder, "log"), signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!(await runtime.isRunning(id))) throw new Error("the sandbox ended at once");
    return performance.now() - started;
  } finally {
    await runtime.remove(id);
    const group = new ControlGroup(await findHierarchy(), groupPath);
    await (options.groupPath === undefined ? removeGroups(group) : group.remove());
  }
}

/** Also the folder above, which is only for this group. */
export async function removeGroups(group: ControlGroup): Promise<void> {
  await group.remove();
  for (const folder of foldersOf(await findHierarchy(), dirname(group.path))) await rmdir(folder).catch(() => {});
}
