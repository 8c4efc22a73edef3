import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { ServiceRecord } from "@aenv/contract";
import { describeNeeding, type RedisServer, startRedis } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callTool } from "./calls.ts";
import { type ServerProcess, type Starting, startServerProcess } from "./crash/server-process.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";
import { removeHome } from "./processes.ts";

const soon = { timeout: 20_000, interval: 20 };
type Client = Pick<Platform, "demand" | "ask">;

const create = (client: Client, envName: string, more: object = {}, headers = {}) =>
  client.demand("POST", "/env-service", { envName, ...more }, headers) as Promise<ServiceRecord>;

const look = (client: Client, id: string) => client.demand("GET", `/env-service/${id}`) as Promise<ServiceRecord>;

const untilRunning = (client: Client, id: string, available: number) =>
  vi.waitFor(async () => {
    const record = await look(client, id);
    expect(record).toMatchObject({ status: available > 0 ? "Running" : "Creating", available_replicas: available });
    return record;
  }, soon);

/** The ids of a service's replicas: instances without an expiry. */
async function replicasOf(client: Client, name = "probe"): Promise<string[]> {
  const { items } = (await client.demand("GET", `/env-instance/list?envName=${name}&status=Running`)) as {
    items: { id: string; ttl: string }[];
  };
  return items.filter(({ ttl }) => ttl === "").map(({ id }) => id);
}

const mcp = ({ service_url: url }: ServiceRecord) => `http://${url}/mcp`;

async function pidOf({ service_url: url }: ServiceRecord): Promise<number> {
  const response = await fetch(`http://${url}/functions/pid`, {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json" },
  });
  return ((await response.json()) as { data: number }).data;
}

/** Opens an MCP session and returns its id. */
async function openSession(url: string): Promise<string> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const answer = await fetch(url, { method: "POST", headers, body });
  await answer.text();
  return String(answer.headers.get("mcp-session-id"));
}

function describeServices(name: string, storeOf: () => string | undefined) {
  describe(`services, with the store ${name}`, () => {
    let platform: Platform;
    let probe: string;
    beforeAll(async () => {
      const store = storeOf();
      platform = await startPlatform({ flags: { round: "50ms" }, ...(store !== undefined && { store }) });
      probe = await publish(platform, projects.probe);
    });
    afterAll(() => platform?.close());

    it("are created, listed, scaled and deleted with the documented fields", async () => {
      const made = await create(platform, probe, { replicas: 2, owner: "ada", environment_variables: { A: "1" } });
      expect(made).toMatchObject({ status: "Creating", replicas: 2, available_replicas: 0, owner: "ada", pvc_name: "" });
      expect(made.env).toMatchObject({ name: "probe", version: "1.0.0", deploy_config: expect.anything() });
      expect(made.id).toMatch(/^probe-svc-[a-z2-7]{20}$/);
      expect(made.service_url).toBe(`${new URL(platform.dataUrl).host}/env-service/${made.id}`);
      await untilRunning(platform, made.id, 2);
      for (const ref of ["*", "probe", probe]) {
        expect(await platform.demand("GET", `/env-service/${ref}/list`)).toMatchObject([
          { id: made.id, environment_variables: { A: "1" } },
        ]);
      }
      expect(await platform.demand("GET", "/env-service/nothing/list")).toEqual([]);
      expect(await platform.demand("PUT", `/env-service/${made.id}`, { replicas: 1 })).toMatchObject({ status: "Updating", replicas: 1 });
      await untilRunning(platform, made.id, 1);
      await vi.waitFor(async () => expect(await replicasOf(platform)).toHaveLength(1), soon);
      await platform.demand("PUT", `/env-service/${made.id}`, { replicas: 0 });
      await untilRunning(platform, made.id, 0);
      for (const _ of ["once", "again"]) expect(await platform.demand("DELETE", `/env-service/${made.id}`)).toBe("Deleted successfully");
      expect(await platform.ask("GET", `/env-service/${made.id}`)).toMatchObject({ status: 404, error: { code: "service.not_found" } });
      expect(await replicasOf(platform)).toEqual([]);
    });

    it("are reached at one address, round-robin, and restart failed replicas", async () => {
      const made = await create(platform, probe, { replicas: 2, service_name: "turns" });
      expect(made.id).toBe("turns");
      await untilRunning(platform, "turns", 2);
      const pids = new Set(await Promise.all(Array.from({ length: 6 }, () => pidOf(made))));
      expect(pids.size).toBe(2);
      await callTool(mcp(made), "crash").catch(() => {});
      // The remaining replica serves all calls.
      await vi.waitFor(async () => expect((await callTool(mcp(made), "count")).status).toBe(200), soon);
      await untilRunning(platform, "turns", 2);
      const after = new Set(await Promise.all(Array.from({ length: 6 }, () => pidOf(made))));
      expect(after.size).toBe(2);
      expect([...after].filter((pid) => pids.has(pid))).toHaveLength(1);
      const [replica] = await replicasOf(platform);
      for (const [verb, body] of Object.entries({ fork: { count: 1 }, renew: { ttl: "1s" } })) {
        expect(await platform.ask("POST", `/env-instance/${replica}/${verb}`, body)).toMatchObject({ status: 501 });
      }
      await platform.demand("DELETE", `/env-instance/${replica}`);
      await vi.waitFor(async () => expect(await replicasOf(platform)).not.toContain(replica), soon);
      await untilRunning(platform, "turns", 2);
      await platform.demand("DELETE", "/env-service/turns");
    });
  });
}

describeServices("in memory", () => "memory:");
describeServices("SQLite", () => undefined);

describe("a service", () => {
  let platform: Platform;
  let probe: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { round: "50ms" } });
    probe = await publish(platform, projects.probe);
  });
  afterAll(() => platform?.close());

  it("routes a session to the replica that opened it", async () => {
    const made = await create(platform, probe, { replicas: 2, service_name: "sessions" });
    await untilRunning(platform, "sessions", 2);
    const sessions = await Promise.all(Array.from({ length: 4 }, () => openSession(mcp(made))));
    for (const session of [...sessions, ...sessions.reverse()]) {
      expect(await callTool(mcp(made), "count", {}, { headers: { "mcp-session-id": session } })).toMatchObject({ status: 200 });
    }
    await platform.demand("DELETE", "/env-service/sessions");
  });

  it("replaces its replicas for a new variable, while one always runs", async () => {
    const made = await create(platform, probe, { service_name: "changed", environment_variables: { KEPT: "a", SET: "1" } });
    await untilRunning(platform, "changed", 1);
    const read = async (name: string) => (await callTool(mcp(made), "variable", { name })).text;
    expect([await read("KEPT"), await read("SET"), await read("AENV_TYPE")]).toEqual(["a", "1", "service"]);
    await platform.demand("PUT", "/env-service/changed", { environment_variables: { SET: "2" } });
    const seen = new Set<string | null>();
    // A call in flight may be cut off when the old replica ends, but no call is refused for lack of replicas.
    for (let value: string | null = null; value !== "2"; ) {
      const called = await callTool(mcp(made), "variable", { name: "SET" });
      value = called.text;
      seen.add(value ?? called.code);
    }
    expect(seen).not.toContain("service.unavailable");
    expect(seen).toContain("1");
    expect(await read("KEPT")).toBe("a");
    await vi.waitFor(async () => expect(await replicasOf(platform)).toHaveLength(1), soon);
    await platform.demand("DELETE", "/env-service/changed");
  });

  it("has storage that is deleted only if requested", async () => {
    const request = { service_name: "kept", storage_size: "1Gi", pvc_name: "data" };
    const made = await create(platform, probe, request);
    expect(made.pvc_name).toBe("data");
    await untilRunning(platform, "kept", 1);
    const folder = String((await callTool(mcp(made), "variable", { name: "AENV_STORAGE" })).text);
    expect(folder.startsWith(join(platform.home, "storage"))).toBe(true);
    await platform.demand("DELETE", "/env-service/kept");
    expect(existsSync(folder)).toBe(true);
    await create(platform, probe, request);
    await create(platform, probe, { ...request, service_name: "other" });
    await platform.demand("DELETE", "/env-service/other?deleteStorage=true");
    // The first service still uses it.
    expect(existsSync(folder)).toBe(true);
    await platform.demand("DELETE", "/env-service/kept?deleteStorage=true");
    expect(existsSync(folder)).toBe(false);
    expect(await platform.ask("POST", "/env-service", { envName: probe, ...request, replicas: 2 })).toMatchObject({
      status: 400,
      message: expect.stringContaining("replicas must be 1"),
    });
    for (const pvc_name of ["../x", "a/b", "..", "A"]) {
      expect((await platform.ask("POST", "/env-service", { envName: probe, ...request, pvc_name })).status, pvc_name).toBe(400);
    }
  });

  it("shows why it does not start, and keeps its environment from being deleted", async () => {
    await create(platform, probe, { service_name: "broken", environment_variables: { SETUP: "fail" } });
    await vi.waitFor(async () => {
      expect(await look(platform, "broken")).toMatchObject({ status: "Creating", reason: expect.stringContaining("told to fail") });
    }, soon);
    const url = `${platform.dataUrl}/env-service/broken/mcp`;
    expect(await callTool(url, "count")).toMatchObject({ status: 503, code: "service.unavailable" });
    expect(await platform.ask("DELETE", "/env/probe/1.0.0")).toMatchObject({ status: 409, error: { code: "environment.in_use" } });
    expect(await platform.ask("POST", "/env-service", { envName: probe, service_name: "broken" })).toMatchObject({ status: 409 });
    expect(await platform.ask("PUT", "/env-service/broken", { image: "a:1" })).toMatchObject({ status: 501 });
    expect(await platform.ask("PUT", "/env-service/none", { replicas: 1 })).toMatchObject({ status: 404 });
    await platform.demand("DELETE", "/env-service/broken");
  });
});

describe("a service with access on", () => {
  it("is accessible only to its owner, on both ports, and its name is not a key", async () => {
    await using platform = await startPlatform({ flags: { round: "50ms", access: "on" } });
    const ada = await platform.token("ada", "publisher");
    const eve = await platform.token("eve", "publisher");
    const agent = await platform.token("ada", "agent");
    const probe = await publish(platform, projects.probe, { headers: ada });
    const made = await create(platform, probe, { service_name: "mine" }, ada);
    expect(made.owner).toBe("ada");
    await vi.waitFor(async () => {
      expect(await platform.demand("GET", "/env-service/mine", undefined, ada)).toMatchObject({ status: "Running" });
    }, soon);
    expect(await platform.demand("GET", "/env-service/*/list", undefined, eve)).toEqual([]);
    for (const [method, body] of [["GET"], ["PUT", { replicas: 3 }]] as const) {
      expect((await platform.ask(method, "/env-service/mine", body, eve)).status).toBe(404);
      expect((await platform.ask(method, "/env-service/mine", body, agent)).status).toBe(403);
    }
    await platform.demand("DELETE", "/env-service/mine", undefined, eve);
    const statusFor = async (headers: object) => (await callTool(mcp(made), "count", {}, { headers: { ...headers } })).status;
    expect(await Promise.all([{}, eve, ada, agent].map(statusFor))).toEqual([401, 404, 200, 200]);
    const reward = await fetch(`http://${made.service_url}/task/reward`, { method: "POST", headers: agent });
    expect(reward.status).toBe(403);
  });
});

describe("a service's number of replicas", () => {
  it("is raised only by a token whose limit and scopes allow it", async () => {
    await using platform = await startPlatform({ flags: { round: "50ms", access: "on", maxInstances: 20 } });
    const ada = await platform.token("ada", "publisher");
    const limited = async (more: { maxInstances?: number; scopes?: string[] }) => {
      const { token } = await platform.server.access.tokens.create({ owner: "ada", roles: ["trainer"], ...more });
      return { authorization: `Bearer ${token}` };
    };
    const [two, elsewhere] = [await limited({ maxInstances: 2 }), await limited({ scopes: ["other-*"] })];
    const probe = await publish(platform, projects.probe, { headers: ada });
    const refused = { status: 429, error: { code: "quota.exceeded", retryable: false } };
    expect(await platform.ask("POST", "/env-service", { envName: probe, replicas: 3 }, two)).toMatchObject(refused);
    expect(await platform.ask("POST", "/env-service", { envName: probe, replicas: 21 }, ada)).toMatchObject(refused);
    await create(platform, probe, { service_name: "mine", replicas: 0 }, two);
    const put = (replicas: number, headers: Record<string, string>) => platform.ask("PUT", "/env-service/mine", { replicas }, headers);
    expect(await put(3, two)).toMatchObject(refused);
    expect(await put(21, ada)).toMatchObject(refused);
    expect(await put(1, elsewhere)).toMatchObject({ status: 404 });
    expect(await put(3, ada)).toMatchObject({ status: 200, data: { replicas: 3 } });
    await vi.waitFor(async () => {
      expect(await platform.demand("GET", "/env-service/mine", undefined, ada)).toMatchObject({ available_replicas: 3 });
    }, soon);
    // The other instances count too.
    expect(await put(4, await limited({ maxInstances: 3 }))).toMatchObject(refused);
    expect(await put(2, two)).toMatchObject({ status: 200, data: { replicas: 2 } });
  });
});

describe("a service whose server is killed", () => {
  const home = mkdtempSync(join(tmpdir(), "aenv-services-"));
  const flags = { round: "100ms", poolMin: 0 };
  let server: ServerProcess | undefined;
  afterAll(async () => {
    await server?.kill();
    await removeHome(home);
  });

  it("keeps live replicas, and restarts dead ones", async () => {
    server = await startServerProcess(home, { flags }).ready;
    const probe = await publish(server, projects.probe);
    await create(server, probe, { replicas: 2, service_name: "lasting", environment_variables: { WORD: "kept" } });
    const before = await untilRunning(server, "lasting", 2);
    const pid = await pidOf(before);
    await server.kill();
    process.kill(pid, "SIGKILL");
    server = await startServerProcess(home, { flags }).ready;
    const after = await untilRunning(server, "lasting", 2);
    const pids = new Set(await Promise.all(Array.from({ length: 6 }, () => pidOf(after))));
    expect(pids.size).toBe(2);
    expect(pids).not.toContain(pid);
    expect((await callTool(mcp(after), "variable", { name: "WORD" })).text).toBe("kept");
    await server.stop();
    server = await startServerProcess(home, { flags }).ready;
    await untilRunning(server, "lasting", 2);
  }, 60_000);

  it("exists completely or not at all, wherever the server died during its creation, update or deletion", async () => {
    for (let moments = 5; moments <= 65; moments += 12) {
      const client = server as ServerProcess;
      await client.dieAfter(moments);
      const work = async () => {
        await create(client, "probe@1.0.0", { service_name: "brief" });
        await client.demand("PUT", "/env-service/brief", { replicas: 2 });
        await client.demand("DELETE", "/env-service/brief");
      };
      await Promise.race([work().catch(() => {}), pause(5_000)]);
      await client.kill();
      server = await startServerProcess(home, { flags }).ready;
      const found = await server.ask("GET", "/env-service/brief");
      if (found.success) await untilRunning(server, "brief", found.data.replicas);
      await server.demand("DELETE", "/env-service/brief");
      await untilRunning(server, "lasting", 2);
      await vi.waitFor(async () => expect(await replicasOf(server as ServerProcess)).toHaveLength(2), soon);
    }
  }, 120_000);
});

describeNeeding("redis", "services of two servers on one Redis", () => {
  let home: string;
  let redis: RedisServer;
  const started: Starting[] = [];
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "aenv-services-"));
    redis = await startRedis();
  });
  afterAll(async () => {
    await Promise.allSettled(started.map((server) => server.kill()));
    await removeHome(home);
    await redis?.[Symbol.asyncDispose]();
  });

  const start = () => {
    const starting = startServerProcess(home, { flags: { store: redis.url, round: "100ms", poolMin: 0 } });
    started.push(starting);
    return starting.ready;
  };

  it("route a session through any server, and report it gone with its replica", async () => {
    const servers = (await Promise.all([start(), start()])) as [ServerProcess, ServerProcess];
    await create(servers[0], await publish(servers[0], projects.probe), { replicas: 3, service_name: "talks" });
    await untilRunning(servers[1], "talks", 3);
    const urls = servers.map(({ dataUrl }) => `${dataUrl}/env-service/talks/mcp`) as [string, string];
    const sessions: string[] = [];
    const tags = () => new Set(sessions.map((session) => session.split(".")[0]));
    // Every process that serves a data port has turns of its own.
    while (sessions.length < 6 || (tags().size < 3 && sessions.length < 60))
      sessions.push(await openSession(urls[sessions.length % 2] as string));
    const replicas = await replicasOf(servers[0]);
    expect(tags().size).toBe(3);
    for (const id of replicas) for (const session of sessions) expect(session).not.toContain(id);
    // A call with a trailer does not take the fast path.
    for (const headers of [{}, { trailer: "x" }]) {
      for (const url of [...urls, ...urls]) {
        for (const session of sessions) {
          const called = await callTool(url, "count", {}, { headers: { ...headers, "mcp-session-id": session } });
          expect(called).toMatchObject({ status: 200, isError: false });
        }
      }
    }
    for (const url of urls) {
      for (const session of ["unknown", `0123456789abcdef.${sessions[0]?.split(".")[1]}`]) {
        const called = await callTool(url, "count", {}, { headers: { "mcp-session-id": session } });
        expect(called).toMatchObject({ status: 404, code: "session.not_found" });
      }
    }
    for (const id of replicas) await servers[0].demand("DELETE", `/env-instance/${id}`);
    for (const url of urls) {
      for (const session of sessions) {
        const called = await callTool(url, "count", {}, { headers: { "mcp-session-id": session } });
        expect(called).toMatchObject({ status: 404, code: "session.not_found" });
      }
    }
    await servers[0].demand("DELETE", "/env-service/talks");
    await Promise.all(servers.map((server) => server.stop()));
  });

  it("are reconciled by both servers and by the remaining one, with the requested number of replicas", async () => {
    const [first, second] = await Promise.all([start(), start()]);
    const probe = await publish(first, projects.probe);
    await create(first, probe, { replicas: 3, service_name: "both" });
    await untilRunning(second, "both", 3);
    expect(await replicasOf(second)).toHaveLength(3);
    for (const server of [first, second]) {
      expect((await callTool(`${server.dataUrl}/env-service/both/mcp`, "count")).status).toBe(200);
    }
    await first.kill();
    await second.demand("PUT", "/env-service/both", { replicas: 2 });
    await vi.waitFor(async () => expect(await replicasOf(second)).toHaveLength(2), soon);
    await untilRunning(second, "both", 2);
    await second.demand("DELETE", "/env-service/both");
    expect(await replicasOf(second)).toEqual([]);
    await second.stop();
  });
});
