import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleOfCode } from "./fixtures/archives.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

let platform: Platform;
let probe: string;
let id: string;

beforeAll(async () => {
  platform = await startPlatform();
  probe = await publish(platform, projects.probe);
  ({ id } = await platform.create(probe));
});
afterAll(() => platform?.close());

describe("an unknown field", () => {
  it.each([
    ["/env-instance", { envName: "probe", tsk: "t1" }, "tsk", "task"],
    ["/env-instance", { envName: "probe", label: { a: "b" } }, "label", "labels"],
    ["/env-instance/batch", { envName: "probe", cuont: 2 }, "cuont", "count"],
    ["/env-instance/batch", { requests: [{ envName: "probe", sed: 1 }] }, "sed", "seed"],
    ["/env-instance/ID/reset", { tsk: "t1" }, "tsk", "task"],
    ["/env-instance/ID/fork", { coutn: 2 }, "coutn", "count"],
    ["/env-instance/ID/renew", { tll: "1h" }, "tll", "ttl"],
    ["/env-service", { envName: "probe", replica: 2 }, "replica", "replicas"],
    ["/token", { owner: "ada", role: ["trainer"] }, "role", "roles"],
    ["/env/probe/1.0.0/visibility", { visiblity: "public" }, "visiblity", "visibility"],
  ])("is refused by %s with the intended one: %j", async (path, body, given, meant) => {
    const answer = await platform.ask("POST", path.replace("ID", id), body);
    expect(answer).toMatchObject({ status: 400, error: { code: "request.invalid" } });
    expect(answer.message).toContain(`unknown field '${given}'; did you mean '${meant}'?`);
  });

  it("is refused in an update of a service too", async () => {
    const { id: service } = (await platform.demand("POST", "/env-service", { envName: probe, replicas: 1 })) as { id: string };
    const answer = await platform.ask("PUT", `/env-service/${service}`, { replcas: 2 });
    expect(answer).toMatchObject({ status: 400, message: expect.stringContaining("did you mean 'replicas'?") });
    await platform.demand("DELETE", `/env-service/${service}`);
  });

  it("does not include those that the original's clients send", async () => {
    const request = { envName: probe, datasource: "", ttl: "30m", arguments: [], mount_points: [] };
    const variables = { envNAME: "probe", envversion: probe.split("@")[1] };
    const made = await platform.create(probe, { ...request, environment_variables: variables });
    await platform.demand("DELETE", `/env-instance/${made.id}`, {});
    expect(await platform.ask("POST", "/token", { user: "ada", maxInstanceCount: 2 })).toMatchObject({
      status: 200,
      data: { user: "ada" },
    });
  });

  it("is kept in a published config", async () => {
    const config = { name: "loose", version: "1.0.0", colour: "blue", artifacts: [{ type: "image", content: "x" }] };
    expect(await platform.ask("POST", "/env", config)).toMatchObject({ status: 200 });
  });
});

describe("a field that is too large", () => {
  const large = "x".repeat(300_000);
  it.each([
    ["/env-instance", { envName: "probe", labels: { a: large } }, "labels.a must have at most 256 characters"],
    ["/env-instance", { envName: "probe", task: large }, "task must have at most 256 characters"],
    [
      "/env-instance",
      { envName: "probe", environment_variables: { A: large } },
      "environment_variables must have at most 262144 bytes in all",
    ],
    ["/env-instance", { envName: "probe", arguments: [large] }, "arguments.0 must have at most 8192 characters"],
    [
      "/env-service",
      { envName: "probe", environment_variables: { A: large } },
      "environment_variables must have at most 262144 bytes in all",
    ],
    ["/env-service", { envName: "probe", cpu_limit: large }, "cpu_limit must have at most 64 characters"],
    ["/token", { owner: "ada", note: "x".repeat(201) }, "note must have at most 200 characters"],
    ["/token", { owner: "ada", scopes: Array(101).fill("a") }, "scopes must have at most 100 entries"],
    ["/env", { name: "big", version: "1.0.0", description: large }, "description is too long; at most 10000 characters are allowed"],
    [
      "/env",
      { name: "big", version: "1.0.0", tags: [large] },
      "tags are too many or too long; at most 100 of at most 100 characters are allowed",
    ],
    ["/env", { name: "big", version: "1.0.0", artifacts: [{ type: "image", content: large }] }, "artifacts are too many or too long"],
  ])("is refused by %s (%#)", async (path, body, problem) => {
    const answer = await platform.ask("POST", path, body);
    expect(answer.status).toBe(400);
    expect(answer.message).toContain(problem);
    expect(answer.message.length).toBeLessThan(400);
  });

  it("is refused as an idempotency key", async () => {
    const answer = await platform.ask("POST", "/env-instance", { envName: probe }, { "idempotency-key": "x".repeat(257) });
    expect(answer).toMatchObject({ status: 400, message: expect.stringContaining("at most 256 are allowed") });
  });
});

describe("a duration beyond the range of dates", () => {
  it.each([
    ["/env-instance", { ttl: "9999999999h" }],
    ["/env-instance", { ttl: `${"9".repeat(60)}d` }],
    ["/env-instance/ID/renew", { ttl: "9999999999h" }],
    ["/token", { owner: "ada", expiresAt: "+275760-09-13T00:00:00.001Z" }],
    ["/token", { owner: "ada", expiresAt: "99999-01-01T00:00:00Z" }],
    ["/token", { owner: "ada", expiresAt: "2026-02-31T00:00:00Z" }],
    ["/env", { name: "long", version: "1.0.0", deployConfig: { ttl: "9999999999h" } }],
  ])("is refused by %s: %j", async (path, body) => {
    const request = path === "/env-instance" ? { envName: probe, ...body } : body;
    expect(await platform.ask("POST", path.replace("ID", id), request)).toMatchObject({ status: 400, success: false });
  });
});

describe("an error", () => {
  it("contains no path of the server, even from the environment's code", async () => {
    const { digest, bytes } = bundleOfCode("leaky", "1.0.0", "throw new Error(import.meta.dirname);");
    await platform.demand("PUT", `/bundle/${digest}`, bytes);
    const config = { name: "leaky", version: "1.0.0", artifacts: [{ type: "bundle", content: digest }] };
    const refused = await platform.ask("POST", "/env", config);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.message).toContain("<home>/bundles");
    await platform.demand("POST", "/env?verify=false", config);
    const failed = await platform.ask("POST", "/env-instance", { envName: "leaky" });
    expect(failed.status).toBeGreaterThanOrEqual(400);
    const { items } = (await platform.demand("GET", "/env-instance/list?envName=leaky")) as { items: { id: string; reason: string }[] };
    expect(items[0]?.reason).toContain("<home>/bundles");
    const events = await platform.demand("GET", `/env-instance/${items[0]?.id}/events`);
    const batch = await platform.demand("POST", "/env-instance/batch", { envName: "leaky", count: 1 });
    const called = await fetch(`${platform.dataUrl}/env-instance/${items[0]?.id}/health`);
    for (const answer of [refused.message, failed.message, items, events, batch, await called.text()])
      expect(JSON.stringify(answer)).not.toContain(platform.home);
  });

  it("does not repeat itself", async () => {
    const asked: [string, string, unknown?][] = [
      ["POST", "/env-instance", {}],
      ["POST", "/env-instance", { envName: 5, ttl: [], labels: "x" }],
      ["POST", "/env-instance", { envName: "a@b@c" }],
      ["POST", "/env-instance", { envName: "Not A Name" }],
      ["POST", "/env-instance", { envName: "probe", ttl: "soon" }],
      ["POST", "/env-instance", { envName: "probe", wait: 5 }],
      ["POST", "/env-instance", { envName: "nowhere" }],
      ["POST", "/env-instance", "text"],
      ["POST", `/env-instance/${id}/fork`, { count: 0 }],
      ["POST", `/env-instance/${id}/fork`, {}],
      ["POST", `/env-instance/${id}/reset`, { task: "none" }],
      ["POST", `/env-instance/${id}/renew`, {}],
      ["GET", "/env-instance/list?limit=many"],
      ["GET", "/env-instance/none"],
      ["POST", "/env", {}],
      ["POST", "/env", []],
      ["POST", "/env", { name: "UPPER", version: "latest" }],
      ["POST", "/env", { name: "a", version: "1.0.0", dependencies: ["nowhere"] }],
      ["POST", "/token", { owner: "a b" }],
      ["POST", "/token", { owner: "a", roles: ["king"] }],
      ["POST", "/token", {}],
      ["PUT", "/bundle/sha256:0", Buffer.from("x")],
      ["PUT", `/bundle/sha256:${"0".repeat(64)}`, Buffer.from("x")],
      ["GET", "/nowhere"],
    ];
    for (const [method, path, body] of asked) {
      const { message, status } = await platform.ask(method, path, body);
      expect([path, status]).toEqual([path, expect.toSatisfy((value: number) => value >= 400 && value < 500)]);
      const parts = message.toLowerCase().split(": ");
      expect([message, new Set(parts).size]).toEqual([message, parts.length]);
      expect([message, message.match(/invalid/gi)?.length ?? 0]).toEqual([message, expect.toBeOneOf([0, 1])]);
    }
  });
});
