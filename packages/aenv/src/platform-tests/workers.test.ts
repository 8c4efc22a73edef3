import { Agent, request } from "node:http";
import { join } from "node:path";
import { Random, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callFunction, callTool, toolCall, urlOf } from "./calls.ts";
import { startServerProcess } from "./crash/server-process.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";
import { processesOf } from "./processes.ts";

const soon = { timeout: 20_000, interval: 20 };
/** So many that each of two workers has some of them, except once in 32,000 runs. */
const LINES = 16;

/** A connection that stays with its worker. */
class Line {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  /** The status of a tool call; null if the connection broke. */
  call(url: string, tool: string, args: object = {}, headers: Readonly<Record<string, string>> = {}): Promise<number | null> {
    const { body, headers: own } = toolCall(tool, args);
    return new Promise((resolve) => {
      const sent = request(url, { method: "POST", agent: this.#agent, headers: { ...(own as Record<string, string>), ...headers } });
      sent.on("error", () => resolve(null));
      sent.on("response", (response) => {
        response.on("error", () => resolve(null)).resume();
        response.on("end", () => resolve(response.statusCode ?? null));
      });
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

const openLines = () => Array.from({ length: LINES }, () => new Line());

async function metric(platform: Platform, name: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const text = await (await fetch(`${platform.controlUrl}/metrics`, { headers })).text();
  const lines = text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

describe.runIf(process.platform === "linux")("a server with workers", { timeout: 60_000 }, () => {
  let platform: Platform;
  let admin: { readonly authorization: string };
  let probe: string;
  let lines: readonly Line[];
  beforeAll(async () => {
    platform = await startPlatform({ flags: { workers: 2, access: "on", idsAreKeys: false } });
    admin = await platform.token("root", "admin");
    probe = await publish(platform, projects.probe, { isolation: "shared", headers: admin });
    lines = openLines();
  });
  afterAll(async () => {
    for (const line of lines ?? []) line.close();
    await platform?.close();
  });

  it("passes no call with a revoked token or to an ended instance, once the change was answered", async () => {
    const random = new Random(7);
    const tokens: { readonly id: string; readonly headers: { readonly authorization: string }; isValid: boolean }[] = [];
    const instances: { readonly id: string; isLive: boolean }[] = [];
    const grow = async () => {
      const { token, row } = await platform.server.access.tokens.create({ owner: "root", roles: ["trainer"] });
      tokens.push({ id: row.id, headers: { authorization: `Bearer ${token}` }, isValid: true });
      instances.push({ id: (await platform.create(probe, {}, admin)).id, isLive: true });
    };
    /** Through every line at once, so through every worker. */
    const check = async (token: (typeof tokens)[number], instance: (typeof instances)[number]) => {
      const expected = !token.isValid ? 401 : instance.isLive ? 200 : 410;
      const url = urlOf(platform, instance.id);
      const answers = await Promise.all(lines.map((line) => line.call(url, "count", {}, token.headers)));
      expect(answers).toEqual(answers.map(() => expected));
    };
    for (let round = 0; round < 12; round++) {
      await grow();
      const token = random.pick(tokens) as (typeof tokens)[number];
      const instance = random.pick(instances) as (typeof instances)[number];
      // Now the workers have it in memory.
      await check(token, instance);
      if (token.isValid && random.isOneIn(2)) {
        await platform.demand("DELETE", `/token/${token.id}`, undefined, admin);
        token.isValid = false;
      } else if (instance.isLive) {
        await platform.demand("DELETE", `/env-instance/${instance.id}`, undefined, admin);
        instance.isLive = false;
      }
      await check(token, instance);
      await check(tokens.at(-1) as (typeof tokens)[number], instance);
    }
  });

  it("replaces a worker that dies, which costs only the calls that it had in flight", async () => {
    const { id } = await platform.create(probe, {}, admin);
    const url = urlOf(platform, id);
    const before = await metric(platform, "aenv_api_mcp_requests_total", admin);
    const [first] = platform.server.workerPids() as [number, number];
    const calls = lines.map((line) => line.call(url, "wait", { ms: 4_000 }, admin));
    const waits = () => callFunctionAs(platform, id, "waits", admin);
    await vi.waitFor(async () => expect((await waits()).filter((one) => one === "begun")).toHaveLength(LINES), soon);
    process.kill(first, "SIGKILL");
    const answers = await Promise.all(calls);
    const lost = answers.filter((status) => status === null).length;
    expect(answers.filter((status) => status === 200)).toHaveLength(LINES - lost);
    expect(lost).toBeGreaterThan(0);
    expect(lost).toBeLessThan(LINES);
    // Meanwhile the others serve every new connection.
    expect(await Promise.all(lines.map((line) => line.call(url, "count", {}, admin)))).toEqual(lines.map(() => 200));
    await vi.waitFor(async () => {
      expect(platform.server.workerPids()).toHaveLength(2);
      expect(await metric(platform, "aenv_workers", admin)).toBe(2);
    }, soon);
    expect(platform.server.workerPids()).not.toContain(first);
    expect(await metric(platform, "aenv_worker_replacements_total", admin)).toBe(1);
    // At least those that were answered since; what the dead one had counted is not forgotten.
    expect(await metric(platform, "aenv_api_mcp_requests_total", admin)).toBeGreaterThanOrEqual(before + LINES - lost);
  });

  it("refuses the port to another server", async () => {
    const { port } = new URL(platform.dataUrl);
    for (const workers of [1, 2]) {
      await expect(startPlatform({ flags: { workers, dataPort: port } })).rejects.toThrow("the port is in use by another process");
    }
  });
});

describe.runIf(process.platform === "linux")("a server with workers where ids are keys", { timeout: 60_000 }, () => {
  it("passes no call with the id of an instance whose token was revoked, once the revocation was answered", async () => {
    await using platform = await startPlatform({ flags: { workers: 2, access: "on" } });
    const admin = await platform.token("root", "admin");
    const probe = await publish(platform, projects.probe, { isolation: "shared", headers: admin });
    const { token, row } = await platform.server.access.tokens.create({ owner: "root", roles: ["trainer"] });
    const { id } = await platform.create(probe, {}, { authorization: `Bearer ${token}` });
    const lines = openLines();
    const call = (headers = {}) => Promise.all(lines.map((line) => line.call(urlOf(platform, id), "count", {}, headers)));
    for (let time = 0; time < 2; time++) expect(await call()).toEqual(lines.map(() => 200));
    await platform.demand("DELETE", `/token/${row.id}`, undefined, admin);
    expect(await call()).toEqual(lines.map(() => 401));
    expect(await call(admin)).toEqual(lines.map(() => 200));
    for (const line of lines) line.close();
  });
});

describe.runIf(process.platform === "linux")("a server with workers that is stopped", { timeout: 60_000 }, () => {
  it("lets the calls in flight finish, refuses others, and ends its workers", async () => {
    await using platform = await startPlatform({ flags: { workers: 2 } });
    const { id } = await platform.create(await publish(platform, projects.probe));
    const lines = openLines();
    const calls = lines.map((line) => line.call(urlOf(platform, id), "wait", { ms: 4_000 }));
    const waits = async () => (await callFunction(platform, id, "waits")) as string[];
    await vi.waitFor(async () => expect((await waits()).filter((one) => one === "begun")).toHaveLength(LINES), soon);
    const pids = platform.server.workerPids();
    // A terminal sends Ctrl-C to every process.
    for (const pid of pids) for (const signal of ["SIGINT", "SIGTERM"] as const) process.kill(pid, signal);
    const closing = platform.close();
    expect(await Promise.all(calls)).toEqual(lines.map(() => 200));
    await closing;
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    for (const line of lines) line.close();
  });

  it("takes its workers with it when it is killed", async () => {
    using tree = temporaryTree();
    const home = join(tree.path, "home");
    const server = await startServerProcess(home, { flags: { workers: 2, poolMin: 0, store: "memory:" } }).ready;
    const workers = () => processesOf(home).filter(({ command }) => command.includes("workers/main"));
    expect(workers()).toHaveLength(2);
    await server.kill();
    await vi.waitFor(() => expect(workers()).toEqual([]), soon);
  });
});

describe.runIf(process.platform === "linux")("the connections of a port with workers", { timeout: 60_000 }, () => {
  it("are limited for all workers together, also if many come at once, and all of them can be used", async () => {
    const most = 20;
    await using platform = await startPlatform({ flags: { workers: 2, maxConnections: most } });
    const { id } = await platform.create(await publish(platform, projects.probe));
    const lines = Array.from({ length: 3 * most }, () => new Line());
    const call = (line: Line) => line.call(urlOf(platform, id), "count");
    const answers = await Promise.all(lines.map(call));
    const open = new Set(lines.filter((_, at) => answers[at] === 200));
    expect(open.size).toBeLessThanOrEqual(most);
    await vi.waitFor(async () => {
      for (const line of lines) if (!open.has(line) && (await call(line)) === 200) open.add(line);
      expect(open.size).toBe(most);
    }, soon);
    for (const line of lines) line.close();
  });
});

describe.runIf(process.platform === "linux")("an instance that ends when it is idle", { timeout: 60_000 }, () => {
  it("is not idle during a call of a worker, and is after it or after the worker's death", async () => {
    await using platform = await startPlatform({ flags: { workers: 2, idleAfter: "1s" } });
    const ref = await publish(platform, projects.probe, { isolation: "shared" });
    const [finished, killed] = await Promise.all([platform.create(ref), platform.create(ref)]);
    const statusOf = async (id: string) => ((await platform.demand("GET", `/env-instance/${id}`)) as { status: string }).status;
    const long = callTool(urlOf(platform, killed.id), "wait", { ms: 60_000 }).catch(() => null);
    expect((await callTool(urlOf(platform, finished.id), "wait", { ms: 2_500 })).text).toBe("waited");
    expect([await statusOf(finished.id), await statusOf(killed.id)]).toEqual(["Running", "Running"]);
    for (const pid of platform.server.workerPids()) process.kill(pid, "SIGKILL");
    await long;
    await vi.waitFor(async () => {
      expect([await statusOf(finished.id), await statusOf(killed.id)]).toEqual(["Terminated", "Terminated"]);
    }, soon);
  });
});

async function callFunctionAs(platform: Platform, id: string, name: string, headers: Readonly<Record<string, string>>): Promise<string[]> {
  const response = await fetch(urlOf(platform, id, `/functions/${name}`), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: "{}",
  });
  return ((await response.json()) as { data: string[] }).data;
}
