import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createInstanceRequest, forkRequest, instance, resetRequest, resetResult } from "./instance.ts";

const env = {
  id: "weather-demo-1.0.0",
  name: "weather-demo",
  description: "",
  version: "1.0.0",
  tags: null,
  code_url: "",
  status: 6,
  artifacts: null,
  build_config: null,
  test_config: null,
  deploy_config: null,
  created_at: "0001-01-01T00:00:00Z",
  updated_at: "0001-01-01T00:00:00Z",
};
const bare = {
  id: "weather-demo-a1b2c3",
  env: null,
  status: "Running",
  created_at: "",
  updated_at: "",
  ip: "10.244.1.10",
  ttl: "30m",
  owner: "",
};

describe("instance", () => {
  it("parses the original's responses to create, get and list", () => {
    expect(instance.parse(bare)).toEqual(bare);
    expect(instance.parse({ ...bare, env })).toEqual({ ...bare, env });
    const full = { ...env, tags: ["linux"], artifacts: [{ id: "", type: "image", content: "x:1" }], deploy_config: { cpu: "1" } };
    expect(instance.parse({ ...bare, env: full, labels: { a: "b" } })).toMatchObject({ env: full });
  });

  it("accepts raw pod phases as a status", () => {
    for (const status of ["Succeeded", "Unknown"]) expect(instance.parse({ ...bare, status }).status).toBe(status);
  });

  it.each([{ id: "" }, { status: 1 }, { created_at: null }, { env: { name: "a" } }])("refuses %j", (wrong) => {
    expect(instance.safeParse({ ...bare, ...wrong }).success).toBe(false);
  });
});

describe("the sandbox options of a request", () => {
  const parse = (mount_points: unknown, init_command?: unknown) => createInstanceRequest.safeParse({ mount_points, init_command }).success;

  it("are a list of mounts with any fields, and a command", () => {
    for (const mounts of [
      undefined,
      null,
      [],
      [{}],
      [{ id: "OSS_1", remote_dir: "/data", local_dir: "/w", read_only: true, more: { a: 1 } }],
    ])
      expect(parse(mounts)).toBe(true);
    for (const command of [undefined, null, "", "python3 -m http.server"]) expect(parse([], command)).toBe(true);
  });

  it("are refused if they are of another type or too large", () => {
    for (const mounts of [{}, "x", ["x"], [null], [[]], Array(65).fill({}), [{ id: "x".repeat(16_384) }]])
      expect(parse(mounts)).toBe(false);
    for (const command of [1, ["sh"], "a\0b", "x".repeat(8_193)]) expect(parse([], command)).toBe(false);
  });
});

describe("createInstanceRequest", () => {
  it("accepts the original's fields and the additional ones", () => {
    const request = {
      envName: "weather-demo@1.0.0",
      datasource: "",
      environment_variables: { DEBUG: "true" },
      arguments: ["--fast"],
      ttl: "30m",
      owner: "jun",
      labels: { a: "b" },
      id: "mine-1",
      task: "t1",
      seed: 7,
      snapshot: { any: ["json"] },
    };
    expect(createInstanceRequest.parse(request)).toEqual(request);
    expect(createInstanceRequest.parse({})).toEqual({});
  });

  it("accepts every field that the original's clients send, and refuses misspelled ones and wrong types", () => {
    const sent = { envName: "a@1", datasource: "", ttl: "", environment_variables: {}, arguments: [], owner: "o", labels: {} };
    const newer = { mount_points: [{ id: "OSS_x", remote_dir: "/data", local_dir: "/workspace" }], init_command: "sleep 1" };
    expect(createInstanceRequest.safeParse({ ...sent, ...newer }).success).toBe(true);
    expect(createInstanceRequest.safeParse({ evnName: "a@1" }).error?.issues[0]?.message).toBe(
      "unknown field 'evnName'; did you mean 'envName'?",
    );
    expect(createInstanceRequest.safeParse({ environment_variables: { A: 1 } }).success).toBe(false);
    expect(createInstanceRequest.safeParse({ seed: 1.5 }).success).toBe(false);
  });

  it("accepts only DNS labels as an id", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "9", "-", "A", "/", "."), maxLength: 5 }), (id) => {
        const isLabel = /^[a-z0-9-]+$/.test(id) && !id.startsWith("-") && !id.endsWith("-");
        expect(createInstanceRequest.safeParse({ id }).success).toBe(isLabel);
      }),
    );
    expect(createInstanceRequest.safeParse({ id: "a".repeat(63) }).success).toBe(true);
    expect(createInstanceRequest.safeParse({ id: "a".repeat(64) }).success).toBe(false);
  });
});

describe("resetRequest and forkRequest", () => {
  it("allow missing fields, and bound the number of copies", () => {
    expect(resetRequest.parse({})).toEqual({});
    expect(resetRequest.parse({ task: null, seed: 3 })).toEqual({ task: null, seed: 3 });
    expect(forkRequest.parse({ count: 32 })).toEqual({ count: 32 });
    for (const count of [0, -1, 1.5, 1_001, "2"]) expect(forkRequest.safeParse({ count }).success).toBe(false);
  });
});

describe("resetResult", () => {
  it("has an observation of null if an older environment sends none", () => {
    expect(resetResult.parse({ task: { id: "a", goal: 3 }, seed: 1, observation: { text: "go" } })).toEqual({
      task: { id: "a", goal: 3 },
      seed: 1,
      observation: { text: "go" },
    });
    expect(resetResult.parse({ task: null, seed: 1 })).toEqual({ task: null, seed: 1, observation: null });
    expect(resetResult.safeParse({ seed: 1 }).success).toBe(false);
  });
});
