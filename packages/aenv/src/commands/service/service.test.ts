import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../../platform-tests/platform.ts";
import { aenv } from "../../testing/cli.ts";
import { type CommandOptions, runJson } from "../../testing/command.ts";
import { requestOf } from "./create.ts";

describe("aenv service", { timeout: 60_000 }, () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { round: "50ms" } });
    await publish(platform, projects.probe);
  });
  afterAll(() => platform?.close());

  const at = (options: CommandOptions = {}) => ({
    ...options,
    env: { HOME: "/nonexistent", AENV_SYSTEM_URL: platform.controlUrl, ...options.env },
  });

  it("creates one and shows its address as a URL, lists, changes and deletes it", async () => {
    const made = await aenv(["service", "create", "probe", "-s", "tools", "-e", "A=1", "--owner", "ada"], at());
    expect(made.stdout).toMatch(/tools is being started/);
    await vi.waitFor(async () => expect((await aenv(["service", "get", "tools"], at())).stdout).toMatch(/Replicas +1\/1/), 20_000);
    expect((await aenv(["service", "get", "tools"], at())).stdout).toMatch(/Address +http:\/\/127\.0\.0\.1:\d+\//);
    expect((await aenv(["service", "list", "-n", "probe"], at())).stdout).toMatch(/tools .* probe@1\.0\.0 .* ada .* 1\/1/);
    expect((await aenv(["service", "list", "-n", "other"], at())).stdout).toMatch(/^No services of other/);
    expect(await runJson(["service", "update", "tools", "-r", "2", "-e", "B=2", "--json"], at())).toMatchObject({
      replicas: 2,
      environment_variables: { A: "1", B: "2" },
    });
    expect((await aenv(["service", "delete", "tools", "--yes"], at())).stdout).toMatch(/tools is deleted/);
    expect(await runJson(["service", "list", "--json"], at())).toEqual([]);
  });

  it.each([
    [["service", "create", "nope"], 1, "aenv list"],
    [["service", "create", "probe", "-s", "No Name"], 2, "DNS"],
    [["service", "create", "probe", "--enable-storage"], 2, "--storage-size"],
    [["service", "create", "probe", "--enable-storage", "--storage-size", "1Gi", "-r", "2"], 2, "one replica"],
    [["service", "get", "nope"], 1, "aenv service list"],
    [["service", "update", "nope"], 2, "--replicas"],
    [["service", "delete", "nope", "-y"], 1, "aenv service list"],
  ])("prints the problem of %j and the next step", async (argv, code, hint) => {
    const ended = await aenv(argv, at());
    expect(ended.stderr).toContain(hint);
    expect(ended.code).toBe(code);
  });
});

describe("the request of service create", () => {
  const deploy = {
    cpu: "1",
    memoryLimit: "4Gi",
    // Only the publisher may set PATH: the server takes it from the published config.
    environmentVariables: { A: "config", B: "config", PATH: "/opt/bin" },
    replicas: 7,
    service: { replicas: 3, port: 9000, enableStorage: false, storageName: "data", storageSize: "10Gi", mountPath: "/data" },
  };

  it("takes each value from the options, else deployConfig.service, else deployConfig", () => {
    expect(requestOf("shop@1.0.0", { env: { A: "command" }, port: 1 }, deploy, "ada")).toEqual({
      envName: "shop@1.0.0",
      replicas: 3,
      port: 1,
      environment_variables: { A: "command", B: "config" },
      owner: "ada",
      cpu_request: "1",
      cpu_limit: "1",
      memory_limit: "4Gi",
    });
    const { service: _, ...flat } = deploy;
    expect(requestOf("shop", {}, flat, null)).toMatchObject({ replicas: 7 });
    expect(requestOf("shop", { replicas: 1, enableStorage: true }, deploy, null)).toMatchObject({
      storage_size: "10Gi",
      pvc_name: "data",
      mount_path: "/data",
    });
  });
});
