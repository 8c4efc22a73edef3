import { chmodSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect } from "vitest";
import type { Architecture } from "../../engine/architecture.ts";
import type { SandboxRuntime } from "../../engine/engine.ts";
import { ociConfig } from "../../oci/config.ts";
import { openRuntime } from "../../oci/runtime/open.ts";
import type { TakenNetwork } from "./machines.ts";

/** Runs a script of bash as root of a sandbox that has the network, with the programs of this machine; returns what it printed. */
export async function runScript(name: SandboxRuntime, network: TakenNetwork, script: string): Promise<string[]> {
  using bundle = temporaryTree({
    "rootfs/etc/passwd": "root:x:0:0::/:/bin/bash\n",
    "rootfs/etc/resolv.conf": network.resolvConf,
    "runtime/empty": "",
    log: "",
  });
  chmodSync(bundle.path, 0o755);
  for (const folder of ["bin", "lib", "lib64", "sbin"]) symlinkSync(`usr/${folder}`, join(bundle.path, "rootfs", folder));
  const config = ociConfig({
    runtime: name,
    architecture: process.arch as Architecture,
    hostname: "inside",
    rootPath: join(bundle.path, "rootfs"),
    initPath: "/bin/bash",
    // It stays until it is removed: a sandbox whose process 1 ends at once counts as one that did not start.
    initArguments: ["-c", `${script}\necho finished\nexec sleep 120`],
    networkNamespace: network.namespacePath,
    userMapping: null,
    mounts: [{ kind: "bind", source: "/usr", target: "/usr", isReadOnly: true }],
    resources: {},
    groupPath: `/${network.name}/${name}`,
  });
  writeFileSync(join(bundle.path, "config.json"), JSON.stringify(config));
  const runtime = await openRuntime(name, { root: join(bundle.path, "runtime") });
  const logPath = join(bundle.path, "log");
  try {
    await runtime.run(network.name, bundle.path, { logPath, signal: AbortSignal.timeout(60_000) });
    const lines = () => readFileSync(logPath, "utf8").trim().split("\n");
    await expect.poll(() => lines().at(-1), { timeout: 60_000, interval: 20 }).toBe("finished");
    return lines().slice(0, -1);
  } finally {
    await runtime.remove(network.name);
  }
}
