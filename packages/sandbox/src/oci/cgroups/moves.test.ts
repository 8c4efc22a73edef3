import { describeNeeding } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { findHierarchy } from "./group.ts";
import { expectMove, expectMoves, ownFile } from "./moves.ts";

const first = { version: 1, controllers: { pids: "/sys/fs/cgroup/pids" }, mounts: ["/sys/fs/cgroup/pids"] } as const;
const second = { version: 2, mount: "/sys/fs/cgroup" } as const;

describe("the group of this process", () => {
  it.each([
    ["that of the tree of processes", first, "9:cpu,cpuacct:/other\n5:pids:/a:b\n0::/unified\n", "/sys/fs/cgroup/pids/a:b/cgroup.procs"],
    ["that of version 2", second, "0::/user.slice/one\n", "/sys/fs/cgroup/user.slice/one/cgroup.procs"],
    ["none if it is outside of the namespace", second, "0::/../other\n", null],
    ["none without the tree", { ...first, controllers: {} }, "5:pids:/a\n", null],
  ])("is %s", (_, hierarchy, table, expected) => {
    expect(ownFile(hierarchy, table)).toBe(expected);
  });
});

describeNeeding("control-groups", "an expected move", () => {
  it("leaves this process where it is", async () => {
    const hierarchy = await findHierarchy();
    const before = ownFile(hierarchy);
    expect(before).not.toBeNull();
    await Promise.all([expectMove(hierarchy), expectMove(hierarchy)]);
    expect(ownFile(hierarchy)).toBe(before);
  });

  it("is repeated until the last one that expects moves is disposed of", async () => {
    const hierarchy = await findHierarchy();
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const before = timers();
    const [first, second] = [expectMoves(hierarchy), expectMoves(hierarchy)];
    first[Symbol.dispose]();
    const during = timers();
    second[Symbol.dispose]();
    expect([during - before, timers() - before]).toEqual([1, 0]);
  });
});
