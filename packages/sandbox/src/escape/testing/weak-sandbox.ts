import { execFile } from "node:child_process";
import { copyFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import type { Architecture } from "../../engine/architecture.ts";
import { writeTestRoot } from "../../fixtures/test-root.ts";
import { findHierarchy } from "../../oci/cgroups/group.ts";
import { foldersOf } from "../../oci/cgroups/hierarchy.ts";
import { ociConfig } from "../../oci/config.ts";
import type { Attack } from "./attacks.ts";
import type { Targets } from "./weaken.ts";

/** Sandboxes that lack a wall, by runc itself. */
export class WeakSandboxes implements Disposable {
  readonly #tree: Tree = temporaryTree({ "rootfs/empty": "" });
  #count = 0;

  constructor() {
    writeTestRoot(join(this.#tree.path, "rootfs"));
    copyFileSync("/bin/sh", join(this.#tree.path, "init"));
  }

  /** What an attack prints in a sandbox without the walls that stop it. */
  async run({ script, without }: Attack, targets: Targets): Promise<string> {
    const id = `aenv-weak-${process.pid}-${++this.#count}`;
    const { path } = this.#tree;
    const config = ociConfig({
      runtime: "runc",
      architecture: process.arch as Architecture,
      hostname: "weak",
      rootPath: join(path, "rootfs"),
      initPath: join(path, "init"),
      initArguments: ["-c", script],
      networkNamespace: null,
      userMapping: null,
      mounts: [],
      resources: { processes: 200, memoryMb: 256 },
      groupPath: `/${id}/one`,
    });
    const mounts = [
      ...config.mounts.map((mount) => ({ ...mount, options: mount.options.filter((one) => one !== "nodev" && one !== "nosuid") })),
      { destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["mode=1777", "size=64m"] },
    ];
    const env = [...config.process.env, ...Object.entries(targets).map(([name, value]) => `${name}=${value}`)];
    const weak = without({ ...config, mounts, process: { ...config.process, env } }, targets);
    writeFileSync(join(path, "config.json"), JSON.stringify(weak));
    const runc = (...args: string[]) =>
      new Promise<string>((resolve) => {
        const options = { timeout: 30_000, killSignal: "SIGKILL" as const };
        execFile("runc", ["--root", join(path, "state"), ...args], options, (_, stdout, stderr) => resolve(stdout + stderr));
      });
    try {
      return await runc("run", "--bundle", path, id);
    } finally {
      await runc("delete", "--force", id);
      for (const folder of foldersOf(await findHierarchy(), `/${id}`))
        try {
          rmdirSync(folder);
        } catch {}
    }
  }

  [Symbol.dispose](): void {
    this.#tree[Symbol.dispose]();
  }
}
