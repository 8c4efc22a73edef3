import type { PlatformError } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import type { CapabilityLimit } from "../spec/capabilities.ts";
import { chooseVersion } from "./api.ts";
import { assertCapable } from "./checks.ts";
import { parseDaemon, runtimeFor } from "./daemon.ts";
import { registryAuth } from "./images.ts";

describe("the version of the API", () => {
  it.each([
    ["that of an older daemon", "1.41", "1.12", "1.41"],
    ["the newest that is known", "1.60", "1.24", "1.47"],
    ["the oldest of a daemon that has only newer ones", "1.60", "1.50", "1.50"],
    ["none if the daemon is too old", "1.39", "1.12", null],
  ])("is %s", (_, newest, oldest, expected) => {
    expect(chooseVersion(newest, oldest)).toBe(expected);
  });
});

describe("the runtime of a container", () => {
  const daemon = (runtimes: object, more: object = {}) => parseDaemon({ Runtimes: runtimes, DefaultRuntime: "runc", ...more }, {});
  const registered = { runc: { path: "runc" }, runsc: { path: "runsc", runtimeArgs: ["--platform=systrap", "--host-uds=all"] } };

  it("is the daemon's default unless one is chosen", () => {
    expect(runtimeFor(undefined, daemon(registered))).toMatchObject({ runtimeName: null, runtime: "runc" });
    expect(runtimeFor(undefined, daemon(registered, { DefaultRuntime: "runsc" }))).toMatchObject({ runtimeName: null, runtime: "runsc" });
    expect(runtimeFor("runsc", daemon(registered))).toMatchObject({ runtimeName: "runsc", runtime: "runsc" });
    expect(runtimeFor("runc", daemon({ crun: {} }, { DefaultRuntime: "crun" }))).toMatchObject({ runtimeName: null, runtime: "runc" });
  });

  it("is refused if the daemon does not have it, with how to register it", () => {
    expect(() => runtimeFor("runsc", daemon({ runc: {} }))).toThrow(/no runtime 'runsc', only runc: register it in .*daemon\.json/);
  });

  it("is refused if runsc could not create the socket of the init", () => {
    expect(() => runtimeFor("runsc", daemon({ runsc: { runtimeArgs: ["--debug"] } }))).toThrow(/lacks an option.*--host-uds=all/);
  });
});

describe("the capabilities of Docker", () => {
  const spec = { id: "a", command: ["x"], variables: {}, labels: {}, startTimeoutMs: 1, capabilities: "docker" } as const;
  const given = async (info: object, limit: CapabilityLimit = "mapped") => {
    const daemon = parseDaemon({ DefaultRuntime: "runc", Runtimes: { runc: {} }, ...info }, {});
    return assertCapable(spec, limit, daemon, runtimeFor(undefined, daemon)).then(
      () => "given",
      (error: PlatformError) => `${error.code}: ${error.message}`,
    );
  };
  const gvisor = (...runtimeArgs: string[]) => ({
    DefaultRuntime: "runsc",
    Runtimes: { runsc: { runtimeArgs: ["--host-uds=all", ...runtimeArgs] } },
  });

  it("are given where the daemon maps users, or runs without root", async () => {
    expect(await given({ SecurityOptions: ["name=seccomp,profile=builtin", "name=userns"] })).toBe("given");
    expect(await given({ SecurityOptions: ["name=rootless"] })).toBe("given");
    expect(await given({ SecurityOptions: ["name=userns"] }, "minimal")).toMatch(/taskCapabilities is 'minimal'/);
  });

  it("are refused where root of a container is root of this machine, unless the operator allows it", async () => {
    expect(await given({ SecurityOptions: ["name=seccomp,profile=builtin"] })).toMatch(/^instance\.unsupported: .*userns-remap.*docker$/);
    expect(await given({}, "docker")).toBe("given");
  });

  it("are refused with gVisor if it ignores set-user-id programs, with how to change that", async () => {
    expect(await given(gvisor())).toMatch(/^instance\.unsupported: .*"--allow-suid"/);
    expect(await given(gvisor(), "docker")).toMatch(/"--allow-suid"/);
    expect(await given(gvisor("--allow-suid"))).toBe("given");
  });
});

describe("the limits of a container", () => {
  it("are refused where the daemon would ignore them", () => {
    const { assertLimits } = parseDaemon({ MemoryLimit: false, PidsLimit: true }, {});
    const spec = { id: "a", command: ["x"], variables: {}, labels: {}, startTimeoutMs: 1 };
    expect(() => assertLimits({ ...spec, resources: { processes: 5 } })).not.toThrow();
    expect(() => assertLimits({ ...spec, resources: { memoryMb: 5 } })).toThrow(/the limit memoryMb \(5\) of sandbox 'a' cannot be set/);
  });

  it("are refused for want of the number of processes, which every container limits, also if the sandbox names none", () => {
    const { assertLimits } = parseDaemon({ PidsLimit: false }, {});
    const spec = { id: "a", command: ["x"], variables: {}, labels: {}, startTimeoutMs: 1 };
    expect(() => assertLimits(spec)).toThrow(/the limit processes \(1024\) of sandbox 'a' cannot be set.*enable it/);
  });
});

describe("the credentials of a registry", () => {
  const auth = (text: string) => Buffer.from(text).toString("base64");
  const read = (header: string | null) => JSON.parse(Buffer.from(header ?? "", "base64url").toString());

  it("are those of its host in the file of docker login", () => {
    const file = JSON.stringify({ auths: { "registry:5000": { auth: auth("ada:pass:word") }, other: { auth: auth("eve:x") } } });
    expect(read(registryAuth(file, "registry:5000", "f"))).toEqual({
      username: "ada",
      password: "pass:word",
      serveraddress: "registry:5000",
    });
    expect(registryAuth(file, "docker.io", "f")).toBeNull();
  });

  it("are those of Docker's own registry under its old name", () => {
    const file = JSON.stringify({ auths: { "https://index.docker.io/v1/": { identitytoken: "token" } } });
    expect(read(registryAuth(file, "docker.io", "f"))).toEqual({ identitytoken: "token", serveraddress: "docker.io" });
  });

  it("are never in the error about a damaged file", () => {
    expect(() => registryAuth("{ secret", "docker.io", "/auth.json")).toThrow(/^the file \/auth\.json .* is not JSON$/);
  });
});
