import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { beforeAll, describe, expect, it } from "vitest";
import type { Architecture } from "../../engine/architecture.ts";
import { launch } from "../../host/launcher.ts";
import { findHierarchy } from "../cgroups/group.ts";
import type { Hierarchy } from "../cgroups/hierarchy.ts";
import { type ConfigInput, ociConfig } from "../config.ts";
import { crun, runc } from "./dialect.ts";

describe.each([
  { name: "runc", dialect: runc },
  { name: "crun", dialect: crun },
] as const)("with the configuration", ({ name, dialect }) => {
  describeNeeding(name, `a sandbox that ${name} starts`, () => {
    let hierarchy: Hierarchy;
    beforeAll(async () => {
      hierarchy = await findHierarchy();
    });

    /** Runs a script as the init of a sandbox with the programs of this machine. */
    const run = async (script: string, change: Partial<ConfigInput> = {}) => {
      using bundle = temporaryTree({ "rootfs/etc/passwd": "root:x:0:0::/:/bin/sh\n", "state/empty": "" });
      for (const name of ["bin", "lib", "lib64", "sbin"]) symlinkSync(`usr/${name}`, join(bundle.path, "rootfs", name));
      // Root of a sandbox with a user mapping is another user here.
      chmodSync(bundle.path, 0o755);
      const owner = change.userMapping?.hostId ?? 0;
      for (const path of ["rootfs", "rootfs/etc"]) chownSync(join(bundle.path, path), owner, owner);
      const id = `aenv-test-${process.pid}`;
      const config = ociConfig({
        runtime: "runc",
        architecture: process.arch as Architecture,
        hostname: "inside",
        rootPath: join(bundle.path, "rootfs"),
        initPath: "/bin/sh",
        initArguments: ["-c", script],
        networkNamespace: null,
        userMapping: null,
        mounts: [{ kind: "bind", source: "/usr", target: "/usr", isReadOnly: true }],
        resources: {},
        groupPath: `/${id}/one`,
        ...change,
      });
      writeFileSync(join(bundle.path, "config.json"), JSON.stringify(config));
      const call = (...args: string[]) =>
        launch({
          argv: [name, "--root", join(bundle.path, "state"), ...args],
          signal: AbortSignal.timeout(30_000),
          options: dialect.launching?.(hierarchy),
        });
      const { stdout, stderr } = await call("run", "--bundle", bundle.path, id);
      await call("delete", "--force", id);
      spawnSync("sh", ["-c", `for d in /sys/fs/cgroup/${id} /sys/fs/cgroup/*/${id}; do rmdir "$d"; done`]);
      return { stdout: String(stdout).trim(), stderr: String(stderr).trim() };
    };

    it("is process 1 with its own host name, and sees only its own processes", async () => {
      expect(await run('echo $$ $(hostname) $(ls /proc | grep -c "^[0-9]*$")')).toMatchObject({
        stdout: expect.stringMatching(/^1 inside [1-4]$/),
        stderr: "",
      });
    });

    it("has few capabilities, no new privileges and a filter", async () => {
      const { stdout } = await run("grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status");
      expect(stdout.replaceAll("\t", " ")).toBe("CapBnd: 00000000000004fb\nNoNewPrivs: 1\nSeccomp: 2");
    });

    it("has the capabilities of Docker, new privileges and a filter if it asks for them", async () => {
      const { stdout } = await run("grep -E '^(CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status", { capabilities: "docker" });
      expect(stdout.replaceAll("\t", " ")).toBe("CapBnd: 00000000a80425fb\nCapAmb: 0000000000000000\nNoNewPrivs: 0\nSeccomp: 2");
    });

    it.each([
      ["mount a file system", "mount -t tmpfs x /etc"],
      ["create a user namespace", "unshare --user true"],
      ["set the clock", "date -s 2001-01-01"],
      ["set the host name", "hostname other"],
      ["create a device node", "mknod /disk b 254 0"],
      ["read the memory of the kernel", "head -c 1 /proc/kcore | grep -q ."],
      ["change settings of the kernel", "echo 1 > /proc/sys/vm/drop_caches"],
      ["read the log of the kernel", "dmesg"],
      ["write to a read-only mount", "touch /usr/file"],
    ])("cannot %s", async (_, command) => {
      expect((await run(`(${command}) >/dev/null 2>&1; echo $?`)).stdout).toMatch(/^(?!127$)[1-9]/);
    });

    it.runIf(name === "crun")("has the filter that was compiled before, if there is one", async () => {
      const unshare = "unshare --user true; echo $?";
      // One instruction, BPF_RET, with SECCOMP_RET_ALLOW.
      const everything = Buffer.from([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f]).toString("base64");
      expect((await run(unshare, { compiledFilter: everything })).stdout).toBe("0");
      expect((await run(unshare)).stdout).not.toBe("0");
    });

    it("has no network but its own", async () => {
      expect((await run("tail -n +3 /proc/net/dev | cut -d: -f1")).stdout.trim()).toBe("lo");
    });

    it("has the limits that were asked for", async () => {
      const { stdout } = await run("ulimit -n; ulimit -t; cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null", {
        resources: { cpuSeconds: 9, processes: 50, memoryMb: 64, cpus: 0.5 },
        openFiles: 100,
      });
      expect(stdout).toBe("100\n9\n50");
    });

    it("has users that are not those of the machine, with a user mapping", async () => {
      const { stdout, stderr } = await run("cat /proc/self/uid_map", { userMapping: { hostId: 100_000, size: 65_536 } });
      expect({ map: stdout.split(/\s+/), stderr }).toEqual({ map: ["0", "100000", "65536"], stderr: "" });
    });

    it("runs programs of many kinds", async () => {
      expect((await run("seq 100 | sort -n | tail -n 1; mkfifo /f && ls -l /f | cut -c1; (sleep 0.01 & wait); echo done")).stdout).toBe(
        "100\np\ndone",
      );
    });
  });
});
