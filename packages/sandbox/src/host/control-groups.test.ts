import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupFolder, isSandboxGroup } from "./control-groups.ts";

const unified = "31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const hybrid = [
  "30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw",
  "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
  "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
].join("\n");

describe("the control group of this process", () => {
  it.each([
    ["in the only hierarchy", unified, "0::/user.slice/app.scope\n", "/sys/fs/cgroup/user.slice/app.scope"],
    ["beside older ones", hybrid, "4:memory:/x\n0::/\n", "/sys/fs/cgroup/unified"],
    ["below what is mounted", "9 1 0:2 /pod /cg rw - cgroup2 c rw", "0::/pod/one\n", "/cg/one"],
    ["with a space in its name", "9 1 0:2 / /my\\040groups rw - cgroup2 c rw", "0::/one\n", "/my groups/one"],
  ])("is found %s", (_, mountinfo, cgroup, folder) => {
    expect(groupFolder(mountinfo, cgroup)).toBe(folder);
  });

  it.each([
    ["no cgroup v2 is mounted", "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw", "0::/\n"],
    ["it is outside of what is mounted", "9 1 0:2 /pod /cg rw - cgroup2 c rw", "0::/other\n"],
    ["the process is in none", unified, "4:memory:/x\n"],
  ])("is not found where %s", (_, mountinfo, cgroup) => {
    expect(groupFolder(mountinfo, cgroup)).toBeNull();
  });

  it("is read from arbitrary text without an error", () => {
    fc.assert(fc.property(fc.string(), fc.string(), (mountinfo, cgroup) => void groupFolder(mountinfo, cgroup)));
  });
});

describe("a record that names a control group", () => {
  it("is used only if its path has the form of a sandbox group", () => {
    expect(isSandboxGroup("/sys/fs/cgroup/aenv-0123456789abcdef/sandbox.1", "sandbox.1")).toBe(true);
    for (const path of [
      "/",
      "/sys/fs/cgroup",
      "/sys/fs/cgroup/aenv-0123456789abcdef",
      "/sys/fs/cgroup/aenv-0123456789abcdef/boxx1",
      "/sys/fs/cgroup/aenv-0123456789abcdef/../x/aenv-0123456789abcdef/sandbox.1",
    ])
      expect(isSandboxGroup(path, "sandbox.1")).toBe(false);
  });
});
