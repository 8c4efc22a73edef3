import { describe, expect, it } from "vitest";
import { fakeClock } from "../../fixtures/fake-clock.ts";
import { httpServer, type TestServer } from "../../fixtures/http-server.ts";
import { HubClient } from "./hub-client.ts";
import { SchedulerClient } from "./scheduler-client.ts";

/** One exchange with the original's services, as they answer on the wire. */
interface Recorded {
  readonly request: string;
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

/** Plays recorded answers back, each to its own request. */
function replay(...exchanges: readonly Recorded[]): Promise<TestServer> {
  const left = [...exchanges];
  return httpServer(({ method, path, query }, response) => {
    const asked = `${method} ${path}${query.size > 0 ? `?${query}` : ""}`;
    const next = left.shift();
    if (next?.request !== asked) return response.writeHead(599).end(`expected ${next?.request}, was asked ${asked}`);
    return response.writeHead(next.status, { "content-type": next.type ?? "application/json; charset=utf-8" }).end(next.body);
  });
}

const ok = (data: string) => `{"success":true,"code":0,"message":"","data":${data}}`;
const bad = (status: number, message: string) => `{"success":false,"code":${status},"message":${JSON.stringify(message)},"data":null}`;

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    (value) => ({ unexpected: value }),
    (error: unknown) => error,
  );
}

const REF = "weather-demo@1.0.0";
const ID = "weather-demo-a1b2c3";
const clients = { clock: fakeClock(), maxRetries: 0 };
const goEnvironment =
  '{"id":"weather-demo-1.0.0","name":"weather-demo","description":"","version":"1.0.0","tags":["linux"],"code_url":"oss://xxx","status":6,' +
  '"artifacts":[{"id":"","type":"image","content":"docker.io/aenv/weather-demo:1.0.0"}],"build_config":{"dockerfile":"./Dockerfile"},' +
  '"test_config":{"script":"pytest xxx"},"deploy_config":{"cpu":"1","memory":"2G"},"created_at":"2025-12-08T14:21:04.143332845+08:00",' +
  '"updated_at":"2025-12-08T14:21:04.143332845+08:00"}';

describe("recorded answers of the original's api-service", () => {
  it.each<[status: number, message: string, code: string]>([
    [400, "Invalid request parameters: EOF", "request.invalid"],
    [400, "Invalid EnvName format: invalid env format, expected 'name@version', got: weather-demo", "request.invalid"],
    [401, "Missing Authorization header", "access.unauthenticated"],
    [401, "Authorization header format should be Bearer <token>", "access.unauthenticated"],
    [401, "Token does not exist", "access.unauthenticated"],
    [401, "Token validation failed: failed to decode response: invalid character 'p' after top-level value", "access.unauthenticated"],
    [401, "Invalid token", "access.unauthenticated"],
    [403, "Instance count exceeds limit: 2", "quota.exceeded"],
    [429, "You have reached maximum request limit.", "quota.exceeded"],
    [500, "Failed to get instance count: dial tcp: connection refused", "internal"],
    [
      500,
      'Failed to find environment: request failed with status: 404, body: {"success":false,"code":404,"message":"Environment not found","data":null}',
      "environment.not_found",
    ],
    [500, "Failed to create: request failed with status: 403, body: create pod failed: err is pods is forbidden\n", "internal"],
    [500, 'Failed to create: failed to send request: Post "http://controller": context deadline exceeded', "internal"],
  ])("a create rejected with %i '%s' is %s, with the server's message", async (status, message, code) => {
    await using server = await replay({ request: "POST /env-instance", status, body: bad(status, message) });
    const error = await failure(new SchedulerClient(server.url, clients).createInstance({ envName: REF }));
    expect(error).toMatchObject({ code, message: expect.stringContaining(message.trim().slice(0, 60)) });
  });

  it("an unknown route and a panicked handler are errors with their own codes", async () => {
    await using text = await replay({ request: `GET /env-instance/${ID}`, status: 404, body: "404 page not found", type: "text/plain" });
    expect(await failure(new SchedulerClient(text.url, clients).getInstance(ID))).toMatchObject({
      message: expect.stringContaining("404 page not found"),
    });
    await using empty = await replay({ request: `GET /env-instance/${ID}`, status: 500, body: "" });
    expect(await failure(new SchedulerClient(empty.url, clients).getInstance(ID))).toMatchObject({
      code: "internal",
      message: expect.stringContaining("without a body"),
    });
    await using strange = await replay({ request: `GET /env-instance/${ID}`, status: 200, body: "<html>login</html>", type: "text/html" });
    expect(await failure(new SchedulerClient(strange.url, clients).getInstance(ID))).toMatchObject({
      name: expect.stringMatching(/Error$/),
    });
  });

  it.each(["Pending", "Running", "Succeeded", "Failed", "Unknown"])("an instance whose pod is %s keeps its status", async (phase) => {
    const body = ok(
      `{"id":"${ID}","env":null,"status":"${phase}","created_at":"","updated_at":"","ip":"10.244.1.10","ttl":"30m","owner":""}`,
    );
    await using server = await replay({ request: `GET /env-instance/${ID}`, status: 200, body });
    expect(await new SchedulerClient(server.url, clients).getInstance(ID)).toMatchObject({
      id: ID,
      env: null,
      status: phase,
      created_at: "",
    });
  });

  it("an instance of their serverless engine is parsed too: labels, local times, no environment", async () => {
    const body = ok(
      `{"id":"${ID}","env":null,"status":"Running","created_at":"2026-01-12 11:25:46","updated_at":"2026-01-12T11:30:00+08:00","ip":"10.244.1.10","ttl":"","owner":"","labels":{"env":"weather-demo-1.0.0"}}`,
    );
    await using server = await replay({ request: `GET /env-instance/${ID}`, status: 200, body });
    expect(await new SchedulerClient(server.url, clients).getInstance(ID)).toMatchObject({ labels: { env: "weather-demo-1.0.0" } });
  });

  it("a delete of a missing instance is recognised in their 500", async () => {
    const message = `Failed to delete: request failed with status: 404, body: delete pod failed: err is pods "${ID}" not found\n`;
    await using server = await replay(
      { request: `DELETE /env-instance/${ID}`, status: 200, body: ok('"Deleted successfully"') },
      { request: `DELETE /env-instance/${ID}`, status: 500, body: bad(500, message) },
    );
    const client = new SchedulerClient(server.url, clients);
    expect([await client.deleteInstance(ID), await client.deleteInstance(ID)]).toEqual([true, false]);
  });
});

describe("recorded answers of the original's envhub", () => {
  it("reports whether a version exists, and its status by name", async () => {
    await using server = await replay(
      { request: "GET /env/weather-demo/1.0.0/exists", status: 200, body: ok('{"exists":true,"status":6}') },
      // Go leaves a status of 0 out.
      { request: "GET /env/weather-demo/1.0.0/exists", status: 200, body: ok('{"exists":true}') },
      { request: "GET /env/weather-demo/1.0.0/exists", status: 200, body: ok('{"exists":false}') },
      { request: "GET /env/weather-demo/1.0.0/status", status: 200, body: ok('{"status":"Ready"}') },
      { request: "GET /env/weather-demo/1.0.0", status: 200, body: ok(goEnvironment) },
      { request: "GET /env/?limit=100&offset=0", status: 200, body: ok(`[${goEnvironment}]`) },
    );
    const hub = new HubClient(server.url, clients);
    expect(await hub.exists(REF)).toEqual({ exists: true, status: "Ready" });
    expect(await hub.exists(REF)).toMatchObject({ exists: true });
    expect(await hub.exists(REF)).toEqual({ exists: false, status: null });
    expect(await hub.status(REF)).toBe("Ready");
    expect(await hub.get(REF)).toEqual(JSON.parse(goEnvironment));
    expect(await hub.list({ limit: 100, offset: 0 })).toEqual([JSON.parse(goEnvironment)]);
  });

  it.each<[request: string, status: number, message: string, code: string]>([
    ["POST /env/", 400, "Invalid request format: unexpected EOF", "request.invalid"],
    ["POST /env/", 409, "Environment with same name and version already exists", "environment.exists"],
    ["PUT /env/weather-demo/1.0.0", 404, "Environment not found", "environment.not_found"],
    ["PUT /env/weather-demo/1.0.0", 403, "Cannot update released environment", "environment.released"],
    ["POST /env/weather-demo/1.0.0/release", 403, "Environment already released", "environment.released"],
    ["GET /env/weather-demo/1.0.0", 404, "Environment not found", "environment.not_found"],
    ["GET /env/weather-demo/1.0.0/status", 404, "Environment not found", "environment.not_found"],
  ])("rejects %s with %i '%s'", async (request, status, message, code) => {
    await using server = await replay({ request, status, body: bad(status, message) });
    const hub = new HubClient(server.url, clients);
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      "POST /env/": () => hub.create(REF, {}),
      "PUT /env/weather-demo/1.0.0": () => hub.update(REF, { codeUrl: "x" }),
      "POST /env/weather-demo/1.0.0/release": () => hub.release(REF),
      "GET /env/weather-demo/1.0.0": () => hub.get(REF),
      "GET /env/weather-demo/1.0.0/status": () => hub.status(REF),
    };
    expect(await failure(calls[request]?.() ?? Promise.resolve())).toMatchObject({ code, message: expect.stringContaining(message) });
  });
});
