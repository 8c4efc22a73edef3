import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CAPABILITIES } from "../spec/capabilities.ts";
import { DEFAULT_OPEN_FILES } from "../spec/limits.ts";
import { ALLOWED, REFUSED, seccompProfile } from "../spec/seccomp.ts";
import { type ConfigInput, type OciConfig, ociConfig } from "./config.ts";

const plain: ConfigInput = {
  runtime: "runc",
  architecture: "x64",
  hostname: "one",
  rootPath: "/run/root",
  initPath: "/opt/init",
  initArguments: ["--listen", "unix:/x"],
  networkNamespace: null,
  userMapping: null,
  mounts: [],
  resources: {},
  groupPath: "/aenv/one",
};

const target = fc.stringMatching(/^(\/[a-z]{1,4}){1,3}$/).filter((path) => !/^\/(proc|sys|dev)(\/|$)/.test(path));
const inputs: fc.Arbitrary<ConfigInput> = fc.record({
  runtime: fc.constantFrom("runc", "runsc"),
  architecture: fc.constantFrom("x64", "arm64"),
  hostname: fc.stringMatching(/^[a-z][a-z0-9]{0,20}$/),
  rootPath: fc.constant("/run/root"),
  initPath: fc.constant("/opt/init"),
  initArguments: fc.array(fc.string()),
  networkNamespace: fc.option(fc.constant("/run/netns/one")),
  userMapping: fc.option(fc.record({ hostId: fc.integer({ min: 1, max: 1e6 }), size: fc.integer({ min: 1, max: 65_536 }) })),
  mounts: fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("bind" as const), source: target, target, isReadOnly: fc.boolean() }),
      fc.record({ kind: fc.constant("tmpfs" as const), target, sizeMb: fc.integer({ min: 1, max: 1e6 }), isExecutable: fc.boolean() }),
    ),
  ),
  resources: fc.record(
    {
      memoryMb: fc.integer({ min: 1, max: 1e6 }),
      cpus: fc.double({ min: 0.001, max: 64, noNaN: true }),
      processes: fc.integer({ min: 1, max: 1e5 }),
      cpuSeconds: fc.integer({ min: 1, max: 1e5 }),
    },
    { requiredKeys: [] },
  ),
  openFiles: fc.option(fc.integer({ min: 1, max: 1e5 }), { nil: undefined }),
  capabilities: fc.constantFrom("minimal", "docker"),
  groupPath: fc.constant("/aenv/one"),
});

describe("the OCI configuration of any sandbox", () => {
  const always = (claim: (config: OciConfig, input: ConfigInput) => void) =>
    fc.assert(fc.property(inputs, (input) => void claim(ociConfig(input), input)));

  it("is JSON, and the same for the same input", () => {
    always((config, input) => {
      expect(JSON.parse(JSON.stringify(config))).toEqual(config);
      expect(ociConfig(input)).toEqual(config);
    });
  });

  it("has its own processes, files, network, host name and shared memory", () => {
    always(({ linux }, { networkNamespace }) => {
      const types = linux.namespaces.map(({ type }) => type);
      expect(types).toEqual(expect.arrayContaining(["pid", "ipc", "uts", "mount", "network"]));
      expect(new Set(types).size).toBe(types.length);
      for (const { type, path } of linux.namespaces) expect(path ?? null).toBe(type === "network" ? networkNamespace : null);
    });
  });

  it("starts the init as process 1, with the capabilities that were asked for, and without new privileges unless they are those of Docker", () => {
    always(({ process }, { capabilities = "minimal" }) => {
      expect(process.args[0]).toBe("/.aenv/init");
      expect(process.noNewPrivileges).toBe(capabilities === "minimal");
      const { bounding, effective, permitted, ...others } = process.capabilities;
      for (const set of [bounding, effective, permitted]) expect(set).toEqual(CAPABILITIES[capabilities]);
      expect(others).toEqual({ inheritable: [], ambient: [] });
    });
    expect(ociConfig(plain).process.capabilities.bounding).toHaveLength(8);
    expect(CAPABILITIES.docker).toHaveLength(14);
  });

  it("ignores setuid bits and device nodes of every mount, and mounts a parent before what is below it", () => {
    always(({ mounts }) => {
      for (const { destination, options } of mounts) {
        expect(options, destination).toContain("nosuid");
        if (!destination.startsWith("/dev")) expect(options, destination).toContain("nodev");
      }
      for (const [index, { destination }] of mounts.entries())
        for (const later of mounts.slice(index + 1)) expect(destination.startsWith(`${later.destination}/`)).toBe(false);
    });
  });

  it("sets each limit that was asked for, and no other", () => {
    always(({ linux, process }, { resources, openFiles }) => {
      expect(linux.resources.memory !== undefined).toBe(resources.memoryMb !== undefined);
      expect(linux.resources.memory?.swap).toBe(linux.resources.memory?.limit);
      expect(linux.resources.memory?.limit ?? Infinity).toBeGreaterThanOrEqual((resources.memoryMb ?? 0) * 2 ** 20);
      expect(linux.resources.cpu !== undefined).toBe(resources.cpus !== undefined);
      expect(linux.resources.pids !== undefined).toBe(resources.processes !== undefined);
      expect(process.rlimits.find(({ type }) => type === "RLIMIT_CPU")?.hard).toBe(resources.cpuSeconds);
      expect(process.rlimits.find(({ type }) => type === "RLIMIT_NOFILE")?.hard).toBe(openFiles ?? DEFAULT_OPEN_FILES);
    });
  });

  it("filters system calls with runc, and leaves them to the kernel of gVisor with runsc", () => {
    always(({ linux }, { runtime }) => expect(linux.seccomp !== undefined).toBe(runtime === "runc"));
  });

  it("never maps a user of the sandbox to root of the machine", () => {
    always(({ linux }, { userMapping }) => {
      expect(linux.namespaces.some(({ type }) => type === "user")).toBe(userMapping !== null);
      for (const { hostID } of linux.uidMappings ?? []) expect(hostID).toBeGreaterThan(0);
    });
  });
});

describe("an OCI configuration is refused", () => {
  const mountAt = (target: string) => ({ kind: "bind" as const, source: "/a", target, isReadOnly: true });
  it.each([
    ["a mount over /proc", { mounts: [mountAt("/proc")] }, "belongs to the platform"],
    ["a mount below /sys", { mounts: [mountAt("/sys/fs")] }, "belongs to the platform"],
    ["a mount over the init", { mounts: [mountAt("/.aenv")] }, "belongs to the platform"],
    ["a mount over the root", { mounts: [mountAt("/")] }, "below /"],
    ["a mount with ..", { mounts: [mountAt("/a/../proc")] }, "'.' and '..'"],
    ["a relative source", { mounts: [{ kind: "bind", source: "etc", target: "/a", isReadOnly: true }] }, "source 'etc'"],
    ["a folder in memory over /proc", { mounts: [{ kind: "tmpfs", target: "/proc", sizeMb: 1 }] }, "belongs to the platform"],
    ["a folder in memory without size", { mounts: [{ kind: "tmpfs", target: "/a", sizeMb: 0 }] }, "the size of /a is 0 MB"],
    ["a /dev/shm without size", { resources: { shmMb: 0 } }, "/dev/shm is 0 MB"],
    ["a memory limit of 0", { resources: { memoryMb: 0 } }, "memoryMb is 0"],
    ["half a process", { resources: { processes: 0.5 } }, "processes is 0.5"],
    ["root of the machine", { userMapping: { hostId: 0, size: 1 } }, "root of the machine"],
    ["a host name with a dot", { hostname: "a.b" }, "'a.b' is not a host name"],
    ["a control group outside", { groupPath: "/aenv/../x" }, "'/aenv/../x'"],
  ] as const)("with %s", (_, change, message) => {
    expect(() => ociConfig({ ...plain, ...change })).toThrow(message);
  });
});

describe("the seccomp profile", () => {
  const names = (action: string) =>
    seccompProfile("x64")
      .syscalls.filter((rule) => rule.action === action)
      .flatMap((rule) => rule.names);

  it("lists each system call once, either as allowed or as refused", () => {
    const all = [...ALLOWED, ...REFUSED];
    expect(all.filter((name, index) => all.indexOf(name) !== index)).toEqual([]);
  });

  it.each(["mount", "unshare", "setns", "bpf", "keyctl", "io_uring_setup", "clock_settime", "open_by_handle_at", "init_module"])(
    "refuses %s",
    (name) => {
      expect(names("SCMP_ACT_ERRNO")).toContain(name);
      expect(names("SCMP_ACT_ALLOW")).not.toContain(name);
    },
  );

  it("allows clone only without a new namespace, and does not list clone3, whose flags it cannot read", () => {
    const rules = seccompProfile("x64").syscalls.filter((rule) => rule.names.includes("clone"));
    expect(rules).toHaveLength(1);
    expect(rules[0]?.args).toEqual([{ index: 0, value: 0x7e020000, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }]);
    expect([...ALLOWED, ...REFUSED]).not.toContain("clone3");
  });
});
