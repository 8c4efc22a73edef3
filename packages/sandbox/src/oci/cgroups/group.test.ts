import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseMountinfo } from "../../host/mountinfo.ts";
import { ControlGroup, findHierarchy } from "./group.ts";
import { foldersOf, type Hierarchy, parseHierarchy } from "./hierarchy.ts";
import { settingsOf } from "./settings.ts";

describe("the trees of control groups", () => {
  it("are of version 2 if there is one of that version only", () => {
    expect(parseHierarchy("31 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")).toEqual({ version: 2, mount: "/sys/fs/cgroup" });
  });

  it("are of version 1 if controllers have their own, also beside one of version 2", () => {
    const mountinfo = [
      "30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw",
      "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
      "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
      "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    ].join("\n");
    const hierarchy = parseHierarchy(mountinfo);
    expect(hierarchy).toMatchObject({
      version: 1,
      controllers: { memory: "/sys/fs/cgroup/memory", cpuacct: "/sys/fs/cgroup/cpu,cpuacct" },
    });
    expect(foldersOf(hierarchy as Hierarchy, "/aenv/one")).toEqual([
      "/sys/fs/cgroup/memory/aenv/one",
      "/sys/fs/cgroup/cpu,cpuacct/aenv/one",
      "/sys/fs/cgroup/unified/aenv/one",
    ]);
  });

  it("are none in arbitrary text", () => {
    fc.assert(fc.property(fc.string(), (text) => parseHierarchy(text) === null));
  });
});

describe("a tree of control groups that cannot be written", () => {
  it("is an error that says what the server needs", async () => {
    using tree = temporaryTree({ "cgroup.controllers": "memory", "cgroup.subtree_control/not-a-file": "" });
    const group = new ControlGroup({ version: 2, mount: tree.path }, "/aenv/one");
    await expect(group.create({ memoryBytes: 2 ** 20 })).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringMatching(/\+memory.*cgroup\.subtree_control failed .*mount its \/sys\/fs\/cgroup writable/),
    });
  });
});

describe("the settings of a control group", () => {
  it("are one per limit, without swap, in the files of the version", () => {
    const limits = { memoryBytes: 1024, cpuQuotaUs: 50_000, pids: 7 };
    const written = (version: 1 | 2) => Object.fromEntries(settingsOf(limits, version).map(({ file, value }) => [file, value]));
    expect(written(2)).toEqual({ "memory.max": "1024", "memory.swap.max": "0", "cpu.max": "50000 100000", "pids.max": "7" });
    expect(written(1)).toEqual({
      "memory.limit_in_bytes": "1024",
      "memory.memsw.limit_in_bytes": "1024",
      "cpu.cfs_period_us": "100000",
      "cpu.cfs_quota_us": "50000",
      "pids.max": "7",
    });
    expect(settingsOf({}, 1)).toEqual([]);
  });
});

it.each(["/", "/aenv", "aenv/one", "/aenv/../one", "/aenv/", "/aenv/.."])("the path %s is not taken for the group of a sandbox", (path) => {
  expect(() => new ControlGroup({ version: 2, mount: "/sys/fs/cgroup" }, path)).toThrow("is not the path of a sandbox's control group");
});

describeNeeding("control-groups", "a control group", () => {
  let hierarchy: Hierarchy;
  let group: ControlGroup;

  beforeEach(async () => {
    hierarchy = await findHierarchy();
    group = new ControlGroup(hierarchy, `/aenv-test-${process.pid}/one`);
  });

  afterEach(async () => {
    await group.kill();
    await group.remove();
    for (const folder of foldersOf(hierarchy, `/aenv-test-${process.pid}`)) expect(existsSync(folder)).toBe(false);
  });

  /** A shell that has joined the group before it runs the script. */
  const start = async (script: string) => {
    const child = spawn("sh", ["-c", `read go; ${script}`], { stdio: ["pipe", "pipe", "ignore"] });
    await group.join(child.pid ?? 0);
    child.stdin.end("go\n");
    return child;
  };

  it("kills a process and its children, also in other sessions and while it is frozen", async () => {
    await group.create({});
    const child = await start("setsid sleep 1000 & sleep 1000 & echo started; wait");
    await once(child.stdout, "data");
    const ended = once(child, "exit");
    await group.freeze();
    expect(await group.isFrozen()).toBe(true);
    await group.kill();
    expect((await ended)[1]).toBe("SIGKILL");
    expect(group.processes()).toEqual([]);
  });

  it("stops its processes while it is frozen", async () => {
    await group.create({});
    const child = await start("while read line; do :; done < /dev/zero");
    await group.freeze();
    const ticks = () => readFileSync(`/proc/${child.pid}/stat`, "utf8").split(" ").slice(13, 15).join();
    const before = ticks();
    for (let turn = 0; turn < 1e7; turn++);
    expect(ticks()).toBe(before);
    await group.thaw();
    expect(await group.isFrozen()).toBe(false);
  });

  it("limits the number of processes", async () => {
    await group.create({ pids: 4 });
    const child = await start("for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait");
    expect((await once(child, "exit"))[0]).not.toBe(0);
    expect(group.processes().length).toBeLessThanOrEqual(4);
  });

  it("ends a process that uses more memory than the limit, and counts it", async () => {
    await group.create({ memoryBytes: 16 * 2 ** 20 });
    const child = await start("exec head -c 64m /dev/zero | tail -c 64m > /dev/null");
    await once(child, "exit");
    expect((await group.usage()).outOfMemoryKills).toBeGreaterThan(0);
  });

  it("reports what was used, and can be removed twice", async () => {
    await group.create({ cpuQuotaUs: 50_000 });
    const child = await start("echo; sleep 1000");
    await once(child.stdout, "data");
    expect(await group.usage()).toMatchObject({ processes: expect.any(Number), memoryBytes: expect.any(Number), outOfMemoryKills: 0 });
    await group.kill();
    await group.remove();
    await group.remove();
  });

  it("is not left behind if a limit cannot be set", async () => {
    await expect(group.create({ pids: -5 })).rejects.toThrow("the pids limit cannot be set");
  });
});

describeNeeding("control-groups", "a control group of version 2, also where controllers are of version 1", () => {
  const mount = parseMountinfo(existsSync("/proc/self/mountinfo") ? readFileSync("/proc/self/mountinfo", "utf8") : "").find(
    ({ type }) => type === "cgroup2",
  )?.target;

  it.skipIf(mount === undefined)("freezes and kills a process and its children", async () => {
    const group = new ControlGroup({ version: 2, mount: mount ?? "" }, `/aenv-test-${process.pid}/two`);
    try {
      await group.create({});
      const child = spawn("sh", ["-c", "read go; setsid sleep 1000 & echo started; wait"], { stdio: ["pipe", "pipe", "ignore"] });
      await group.join(child.pid ?? 0);
      child.stdin.end("go\n");
      await once(child.stdout, "data");
      const ended = once(child, "exit");
      await group.freeze();
      expect(await group.isFrozen()).toBe(true);
      await group.kill();
      expect((await ended)[1]).toBe("SIGKILL");
    } finally {
      await group.kill();
      await group.remove();
    }
  });

  it.skipIf(mount === undefined || existsSync("/sys/fs/cgroup/cgroup.controllers"))(
    "is refused if its controllers are of version 1",
    async () => {
      const group = new ControlGroup({ version: 2, mount: mount ?? "" }, `/aenv-test-${process.pid}/two`);
      await expect(group.create({ pids: 4 })).rejects.toThrow("limits cannot be set");
      expect(existsSync(`${mount}/aenv-test-${process.pid}`)).toBe(false);
    },
  );
});
