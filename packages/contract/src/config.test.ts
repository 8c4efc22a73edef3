import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkConfig, type EnvironmentConfig, parseConfig } from "./config.ts";
import { isPlatformError, PlatformError } from "./errors.ts";

/** Every documented field, the legacy ones too. */
const complete = {
  name: "weather-demo",
  version: "1.0.0",
  description: "Weather for agents",
  tags: ["linux", "demo"],
  status: "Ready",
  codeUrl: "oss://bucket/key",
  main: "src/index.ts",
  artifacts: [
    { id: "", type: "image", content: "docker.io/aenv/weather-demo:1.0.0" },
    { type: "whl", content: "weather.whl" },
  ],
  buildConfig: {
    dockerfile: "./Dockerfile",
    context: ".",
    image_name: "weather-demo",
    image_tag: "1.0.0",
    build_policy: "IfNotPresent",
    data: ["data", "prompts/system.md"],
  },
  testConfig: { script: "npm test" },
  deployConfig: {
    cpu: "1C",
    memory: "2G",
    os: "linux",
    ephemeralStorage: "5Gi",
    environmentVariables: { DEBUG: "true" },
    environment_variables: { DEBUG: "true" },
    arguments: ["--fast"],
    resource: "autoscale",
    ttl: "1h30m",
    owner: "jun",
    labels: { team: "blue" },
    imagePrefix: "docker.io/aenv",
    podTemplate: "singleContainer",
    templateType: "Default",
    secondImageName: "second:1",
    mountPoints: [{ id: "OSS_1", remote_dir: "/data", local_dir: "/workspace" }],
    initCommand: "python3 -m http.server 3000",
    dataSource: "set-1",
    service: {
      replicas: 1,
      port: 8081,
      enableStorage: false,
      storageName: "aenv",
      storageSize: "10Gi",
      mountPath: "/home/admin/data",
      pvcName: "weather-demo",
    },
    replicas: 0,
    port: 8081,
    enableStorage: true,
    storageName: "aenv",
    storageSize: "10Gi",
    mountPath: "/home/admin/data",
    pvcName: "weather-demo",
    serviceName: "weather",
    cpuRequest: "500m",
    cpuLimit: "2",
    memoryRequest: "512Mi",
    memoryLimit: "2Gi",
    ephemeralStorageRequest: "1Gi",
    ephemeralStorageLimit: "5Gi",
  },
  requirements: { cpu: "1", memory: "2Gi" },
  type: "local",
};

const minimal = { name: "a", version: "1" };

function messages(value: unknown): string[] {
  const checked = checkConfig(value);
  return checked.ok ? [] : checked.problems.map((problem) => problem.message);
}

describe("parseConfig", () => {
  it("accepts every documented field and returns it unchanged", () => {
    expect(parseConfig(complete)).toEqual(complete);
  });

  it("refuses variables that only the platform sets, and accepts all others of the publisher", () => {
    const config = (environment_variables: object) => ({ ...minimal, deployConfig: { environment_variables } });
    expect(messages(config({ PATH: "/opt/bin", NODE_OPTIONS: "--no-warnings", A: "1" }))).toEqual([]);
    expect(messages(config({ AENV_STORAGE: "/x", "A=B": "1" }))).toEqual([
      expect.stringContaining("'AENV_STORAGE' is set by the platform"),
      expect.stringContaining("'A=B' is not a variable's name"),
    ]);
  });

  it("requires a name and a version and nothing else", () => {
    expect(parseConfig(minimal)).toEqual(minimal);
    expect(messages({})).toEqual(["name is missing; it must be a string", "version is missing; it must be a string"]);
  });

  it("keeps unknown fields at every level", () => {
    const value = {
      ...minimal,
      mine: { a: [1, null] },
      artifacts: [{ type: "image", content: "x", digest: "d" }],
      buildConfig: { mine: 1 },
      testConfig: { mine: 2 },
      deployConfig: { mine: 3, service: { mine: 4 } },
      requirements: { mine: 5 },
    };
    expect(parseConfig(value)).toEqual(value);
  });

  it("keeps any unknown field, whatever its value", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^x[a-zA-Z]{1,8}$/), fc.jsonValue(), (key, value) => {
        expect((parseConfig({ ...minimal, [key]: value }) as Record<string, unknown>)[key]).toEqual(value);
      }),
    );
  });

  it("accepts a status in any case, as the hub does", () => {
    for (const status of ["Ready", "ready", "RELEASED", "iNIT"]) expect(parseConfig({ ...minimal, status }).status).toBe(status);
  });

  it.each([
    [{ ...minimal, name: "My Env" }, "name is \"My Env\"; 'My Env' may contain only lower-case letters"],
    [{ ...minimal, name: 7 }, "name is 7; it must be a string"],
    [{ ...minimal, version: "" }, 'version is ""; it must not be empty'],
    [{ ...minimal, version: null }, "version is null; it must be a string"],
    [{ ...minimal, version: "1@2" }, "version is \"1@2\"; it must not contain '@'"],
    [{ ...minimal, status: "Done" }, 'status is "Done"; it must be one of Init, Pending, Creating'],
    [{ ...minimal, tags: "linux" }, 'tags is "linux"; it must be an array'],
    [{ ...minimal, tags: ["a", 1] }, "tags.1 is 1; it must be a string"],
    [{ ...minimal, main: "../index.ts" }, 'main is "../index.ts"; it must be a path inside the project'],
    [{ ...minimal, main: "/index.ts" }, 'main is "/index.ts"; it must be a path inside the project'],
    [{ ...minimal, main: "a\\..\\b.ts" }, "it must be a path inside the project"],
    [{ ...minimal, artifacts: [{ type: "image" }] }, "artifacts.0.content is missing; it must be a string"],
    [{ ...minimal, buildConfig: [] }, "buildConfig is []; it must be an object"],
    [{ ...minimal, buildConfig: { data: [""] } }, 'buildConfig.data.0 is ""; it must not be empty'],
    [{ ...minimal, deployConfig: { ttl: "30" } }, "deployConfig.ttl is \"30\"; invalid duration '30': write a number and a unit"],
    [{ ...minimal, deployConfig: { ttl: 30 } }, "deployConfig.ttl is 30; it must be a string"],
    [{ ...minimal, deployConfig: { cpu: "lots" } }, 'deployConfig.cpu is "lots"; it must be a quantity such as "1", "500m" or "2Gi"'],
    [{ ...minimal, deployConfig: { memory: 2 } }, "deployConfig.memory is 2; it must be a string"],
    [{ ...minimal, deployConfig: { environmentVariables: { A: 1 } } }, "deployConfig.environmentVariables.A is 1; it must be a string"],
    [{ ...minimal, deployConfig: { labels: [] } }, "deployConfig.labels is []; it must be an object of strings"],
    [{ ...minimal, deployConfig: { service: { port: 0 } } }, "deployConfig.service.port is 0; it must be at least 1"],
    [{ ...minimal, deployConfig: { service: { port: 70_000 } } }, "deployConfig.service.port is 70000; it must be at most 65535"],
    [{ ...minimal, deployConfig: { service: { replicas: -1 } } }, "deployConfig.service.replicas is -1; it must be at least 0"],
    [{ ...minimal, deployConfig: { port: 80.5 } }, "deployConfig.port is 80.5; it must be an int"],
    [{ ...minimal, deployConfig: { shmMb: 0 } }, "deployConfig.shmMb is 0; it must be at least 1"],
    [{ ...minimal, deployConfig: { shmMb: "1Gi" } }, 'deployConfig.shmMb is "1Gi"; it must be a number'],
    [{ ...minimal, deployConfig: { shmMb: 0.5 } }, "deployConfig.shmMb is 0.5; it must be an int"],
    [{ ...minimal, deployConfig: { enableStorage: "yes" } }, 'deployConfig.enableStorage is "yes"; it must be a boolean'],
  ])("names the field, its value and what is allowed: %j", (value, message) => {
    expect(messages(value)).toEqual([expect.stringContaining(message)]);
  });

  it.each([[null], [[]], ["text"], [3]])("names the value of a file that is not an object: %j", (value) => {
    expect(messages(value)).toEqual([`the file is ${JSON.stringify(value)}; it must be an object`]);
  });

  it("names all problems at once, with their paths", () => {
    const value = { name: "A", version: 1, deployConfig: { service: { port: "x" } } };
    expect(() => parseConfig(value)).toThrow(PlatformError);
    try {
      parseConfig(value);
    } catch (error) {
      if (!isPlatformError(error, "environment.invalid")) throw error;
      expect(error.message).toMatch(
        /^config\.json: name is .*; version is 1; .*; deployConfig\.service\.port is "x"; it must be a number$/,
      );
      expect(error.details.problems).toMatchObject([
        { path: ["name"] },
        { path: ["version"] },
        { path: ["deployConfig", "service", "port"] },
      ]);
    }
  });

  it("shortens a long value", () => {
    expect(messages({ ...minimal, tags: "x".repeat(500) })[0]?.length).toBeLessThan(140);
  });

  it("either returns a config or names problems, for any JSON", () => {
    const fields = Object.keys(complete) as (keyof EnvironmentConfig)[];
    fc.assert(
      fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
        const checked = checkConfig({ ...complete, [field]: value });
        if (!checked.ok) {
          for (const problem of checked.problems) expect(problem.path[0]).toBe(field);
          expect(checked.problems.length).toBeGreaterThan(0);
        }
      }),
    );
  });
});
