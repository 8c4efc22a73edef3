import type { EnvironmentConfig } from "@aenv/contract";
import { noAbilities } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { RuntimePolicy } from "../slots/runtimes.ts";
import type { ServiceRow, Workload } from "./row.ts";
import { specOf, type WorkloadRequest, workloadFor } from "./workload.ts";

const image = { id: "1", type: "image", content: "registry.example/shop:1" };
const engine = {
  name: "kubernetes",
  can: { ...noAbilities, runtimes: ["runc", "runsc"] as const },
  egress: { reportsRefused: false, changes: false },
};

function versionOf(config: object, more: Partial<EnvironmentVersion> = {}): EnvironmentVersion {
  const identity = { name: "shop", version: "1.0.0" };
  const whole = { ...identity, ...config } as EnvironmentConfig;
  return { ...identity, owner: "ada", config: whole, artifacts: [image], bundleDigest: null, ...more } as EnvironmentVersion;
}

const plan = (environment: EnvironmentVersion, request: WorkloadRequest = {}) =>
  workloadFor(environment, request, { location: "here", baseImage: "base:1" });

describe("a service that the engine runs itself", () => {
  it("runs an image that has the whole program, or a bundle, and needs nothing that only the platform can give it", () => {
    const command = { runtime: { command: ["serve"] } };
    expect(plan(versionOf({}))).toMatchObject({ image: image.content, location: "here", status: null });
    expect(plan(versionOf(command))).not.toBeNull();
    expect(plan(versionOf({}, { bundleDigest: "sha256:1" }))).not.toHaveProperty("baseImage");
    expect(plan(versionOf(command, { bundleDigest: "sha256:1" }))).toMatchObject({ image: image.content, baseImage: "base:1" });
    const bundle = { artifacts: [], bundleDigest: "sha256:1" };
    expect(plan(versionOf({}, bundle))).toMatchObject({ image: "base:1", baseImage: "base:1" });
    expect(plan(versionOf({}, { artifacts: [] }))).toBeNull();
    expect(specFor(versionOf({}, bundle))).toMatchObject({
      command: ["/opt/aenv/node", "main.js", "--host", "{host}", "--port", "{port}"],
      healthPath: "/health",
      bundle: { name: "bundle-1", cwd: ".", baseImage: "base:1" },
    });
    const other = { runtime: { command: ["serve"], cwd: "src" } };
    expect(specFor(versionOf(other, bundle))).toMatchObject({ command: ["serve"], healthPath: null, bundle: { cwd: "src" } });
    const given = { ...other, deployConfig: { arguments: ["--fast"] } };
    expect(specFor(versionOf(given, bundle))).toMatchObject({ command: ["serve", "--fast"] });
    expect(plan(versionOf({ deployConfig: { secrets: { KEY: "key" } } }))).toBeNull();
    expect(plan(versionOf({ deployConfig: { taskSandboxes: { images: ["a:1"] } } }))).toBeNull();
    expect(() => plan(versionOf({}, { artifacts: [{ ...image, content: "/etc/passwd" }] }))).toThrow("not a name in a registry");
  });

  it("listens on the port of the request, of its config, or where environment servers listen", () => {
    expect(plan(versionOf({}))?.port).toBe(8081);
    expect(plan(versionOf({ deployConfig: { port: 7000 } }))?.port).toBe(7000);
    expect(plan(versionOf({ deployConfig: { port: 7000, service: { port: 7001 } } }))?.port).toBe(7001);
    expect(plan(versionOf({ runtime: { command: ["serve"], port: 7002 } }), { port: 0 })?.port).toBe(7002);
    expect(plan(versionOf({ deployConfig: { port: 7000 } }), { port: 9000 })?.port).toBe(9000);
  });

  it("gets the variables of its environment, of the request and of the platform, in this order", () => {
    const environment = versionOf({ deployConfig: { environmentVariables: { A: "own", B: "own" } } });
    const spec = specFor(
      environment,
      { variables: { B: "request", AENV_TYPE: "forged" }, storage: "goods" },
      { mount_path: "/data", storage_size: "1Gi" },
    );
    expect(spec.variables).toEqual({
      A: "own",
      B: "request",
      AENV_TYPE: "service",
      AENV_STORAGE: "/data",
      envNAME: "shop",
      envversion: "1.0.0",
    });
    expect(spec.storage).toEqual({ name: "goods", size: "1Gi", mountPath: "/data" });
  });

  it("is ready by the path of its config; an environment of the kit says so at /health", () => {
    expect(specFor(versionOf({})).healthPath).toBeNull();
    expect(specFor(versionOf({}, { bundleDigest: "sha256:1" })).healthPath).toBe("/health");
    expect(specFor(versionOf({ deployConfig: { healthPath: "/ready" } })).healthPath).toBe("/ready");
    expect(specFor(versionOf({ runtime: { command: ["serve"], healthPath: "/up" } }))).toMatchObject({
      healthPath: "/up",
      command: ["serve"],
    });
  });

  it("has the restrictions of an instance: its policy for connections, and gVisor for owners that are not trusted", () => {
    const spec = specFor(versionOf({ deployConfig: { egress: "open" } }), {}, {}, { runcOwners: ["bob"] });
    expect(spec).toMatchObject({ egress: "open", runtime: "runsc" });
    expect(specFor(versionOf({}), { owner: "eve" }, {}, { runcOwners: ["ada"] })).toMatchObject({ runtime: "runsc" });
    expect(specFor(versionOf({}), {}, {}, { runcOwners: ["ada"] }).runtime).toBeUndefined();
    expect(() => specFor(versionOf({ deployConfig: { egress: "open" } }), {}, {}, { egressLimit: "none" })).toThrow("egressLimit");
  });
});

function specFor(
  environment: EnvironmentVersion,
  change: Partial<ServiceRow> = {},
  request: WorkloadRequest = {},
  { egressLimit = "open" as const, runcOwners = [] as string[] }: { egressLimit?: "open" | "none"; runcOwners?: string[] } = {},
) {
  const row = {
    id: "counter",
    owner: "ada",
    environment: { name: "shop", version: "1.0.0" },
    replicas: 1,
    variables: {},
    storage: null,
    ...change,
  };
  const runtimes = new RuntimePolicy({ engine, runtime: "runc", runcOwners });
  return specOf(row as ServiceRow, plan(environment, request) as Workload, environment, {
    engine,
    egressLimit,
    runtimes,
    bundleFolder: async (digest) => digest,
  });
}
