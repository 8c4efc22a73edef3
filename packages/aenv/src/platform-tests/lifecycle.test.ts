import { Environment } from "@aenv/sdk";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callFunction, callTool, toolCall, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const soon = { timeout: 10_000, interval: 20 };

/** The current view of an instance on the control port. */
const look = (platform: Platform, id: string) => platform.demand("GET", `/env-instance/${id}`) as Promise<Record<string, string>>;

const untilStatus = (platform: Platform, id: string, status: string) =>
  vi.waitFor(async () => {
    const row = await look(platform, id);
    expect(row.status).toBe(status);
    return row;
  }, soon);

describe.each(["instance", "shared"] as const)("an instance with isolation '%s'", (isolation) => {
  let platform: Platform;
  let probe: string;
  beforeAll(async () => {
    platform = await startPlatform();
    probe = await publish(platform, projects.probe, { isolation });
  });
  afterAll(() => platform?.close());

  it("ends within a second of its expiry, and calls and lists report the reason", async () => {
    const { id } = await platform.create(probe);
    expect((await callTool(urlOf(platform, id), "count")).text).toBe("1");
    const { expires_at: due } = (await platform.demand("POST", `/env-instance/${id}/renew`, { ttl: "1s" })) as { expires_at: string };
    const ended = await untilStatus(platform, id, "Terminated");
    const late = Date.parse(String(ended.updated_at)) - Date.parse(String(due));
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(1_000);
    expect(ended.reason).toBe("its time to live of 1s was over");
    expect(await callTool(urlOf(platform, id), "count")).toMatchObject({
      status: 410,
      code: "instance.gone",
      message: expect.stringContaining("its time to live of 1s was over"),
    });
  });

  it("gets its datasource in a variable, and shows the image that it names", async () => {
    const made = await platform.create(probe, { datasource: "swebench/astropy-1" });
    expect(made).toMatchObject({ datasource: "swebench/astropy-1", image: "swebench/astropy-1" });
    const [copy] = (await platform.demand("POST", `/env-instance/${made.id}/fork`, { count: 1 })) as { id: string; image: string }[];
    expect(copy?.image).toBe(made.image);
    for (const id of [made.id, String(copy?.id)]) {
      expect((await callTool(urlOf(platform, id), "variable", { name: "AENV_DATASOURCE" })).text).toBe("swebench/astropy-1");
      await platform.demand("DELETE", `/env-instance/${id}`);
    }
    const refused = await platform.ask("POST", "/env-instance", { envName: probe, datasource: "../../etc" });
    expect(refused).toMatchObject({
      status: 400,
      error: { code: "request.invalid" },
      message: expect.stringContaining("not an image name"),
    });
  });

  it("lives on when it is renewed", async () => {
    const { id, expires_at: before } = await platform.create(probe, { ttl: "1m" });
    const renewed = await platform.demand("POST", `/env-instance/${id}/renew`, { ttl: "1h" });
    expect(renewed).toMatchObject({ status: "Running", ttl: "1h" });
    expect(Date.parse(String((await look(platform, id)).expires_at)) - Date.parse(String(before))).toBeGreaterThan(3_000_000);
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("aborts the tool's signal when the client disconnects", async () => {
    const { id } = await platform.create(probe);
    const gone = new AbortController();
    const call = fetch(urlOf(platform, id), { ...toolCall("wait", { ms: 60_000 }), signal: gone.signal }).catch(() => null);
    await vi.waitFor(async () => expect(await callFunction(platform, id, "waits")).toEqual(["begun"]), soon);
    gone.abort();
    await call;
    await vi.waitFor(async () => expect(await callFunction(platform, id, "waits")).toEqual(["aborted"]), soon);
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("streams progress messages as they are sent", async () => {
    const { id } = await platform.create(probe);
    const call = toolCall("talk", { times: 4, everyMs: 400 });
    const body = { ...JSON.parse(String(call.body)) };
    body.params._meta = { progressToken: "p" };
    const response = await fetch(urlOf(platform, id), { ...call, body: JSON.stringify(body) });
    const heard: { at: number; text: string }[] = [];
    for await (const piece of response.body ?? []) heard.push({ at: performance.now(), text: Buffer.from(piece).toString() });
    const whole = heard.map(({ text }) => text).join("");
    expect(whole).toMatch(/at 1.*at 2.*at 3.*at 4.*talked/s);
    const first = heard.find(({ text }) => text.includes("at 3"))?.at ?? 0;
    const last = heard.find(({ text }) => text.includes("talked"))?.at ?? 0;
    expect(last - first).toBeGreaterThan(300);
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("accepts a large request, and refuses one above the limit", async () => {
    const { id } = await platform.create(probe);
    const call = async (size: number) => callTool(urlOf(platform, id), "size", { text: "x".repeat(size) });
    expect((await call(10_000_000)).text).toBe("10000000");
    expect(await call(30_000_000)).toMatchObject({ status: 413, message: expect.stringContaining("larger than") });
    expect((await call(10)).text).toBe("10");
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("is reported as starting during its start, and stays ended when its start finishes late", async () => {
    const request = { environment_variables: { SETUP_MS: "700" }, wait: false };
    const { id, status } = await platform.create(probe, request);
    expect(status).toBe("Creating");
    expect(await callTool(urlOf(platform, id), "count")).toMatchObject({ code: "instance.starting" });
    await untilStatus(platform, id, "Running");
    expect((await callTool(urlOf(platform, id), "count")).text).toBe("1");

    const other = await platform.create(probe, request);
    await platform.demand("DELETE", `/env-instance/${other.id}`);
    for (let round = 0; round < 12; round++) {
      expect((await look(platform, other.id)).status).toBe("Terminated");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("that does not start reports the reason, and keeps it", async () => {
    const answer = await platform.ask("POST", "/env-instance", { envName: probe, environment_variables: { SETUP: "fail" } });
    expect(answer).toMatchObject({ success: false, message: expect.stringContaining("told to fail in setup") });
    const [failed] = (await platform.demand("GET", `/env-instance/${probe}/list?status=Failed`)) as { id: string; reason: string }[];
    expect(failed?.reason).toContain("told to fail in setup");
    const events = (await platform.demand("GET", `/env-instance/${failed?.id}/events`)) as { what: string }[];
    expect(events.at(-1)?.what).toContain("told to fail in setup");
    expect(await callTool(urlOf(platform, failed?.id ?? ""), "count")).toMatchObject({
      status: 502,
      code: "instance.failed",
      message: expect.stringContaining("told to fail in setup"),
    });
  });
});

describe("a sandbox that crashes", () => {
  let platform: Platform;
  let own: string;
  let shared: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { maxHosts: 1 } });
    own = await publish(platform, projects.probe);
    shared = await publish(platform, projects.probe, { isolation: "shared" });
  });
  afterAll(() => platform?.close());

  it("after the response has become a stream of events ends it with the same error", async () => {
    const { id } = await platform.create(own);
    // A response becomes a stream after a second.
    expect(await callTool(urlOf(platform, id), "crash", { afterMs: 1_200 })).toMatchObject({ status: 200, code: "sandbox.lost" });
    const { id: other } = await platform.create(own);
    await using env = new Environment("probe", { instanceUrl: urlOf(platform, other, "") });
    await expect(env.callTool("crash", { afterMs: 1_200 })).rejects.toMatchObject({ code: "sandbox.lost" });
  });

  it("fails its own instances and no others, with the cause", async () => {
    const [left, right, elsewhere, alone] = await Promise.all([
      platform.create(shared, { owner: "ada" }),
      platform.create(shared, { owner: "ada" }),
      platform.create(shared, { owner: "eve" }),
      platform.create(own),
    ]);
    const broken = await callTool(urlOf(platform, left.id), "crash");
    expect(broken).toMatchObject({ status: 502, code: "sandbox.lost" });
    for (const { id } of [left, right]) {
      expect((await untilStatus(platform, id, "Failed")).reason).toMatch(/exit.* 7/);
      const events = (await platform.demand("GET", `/env-instance/${id}/events`)) as { what: string }[];
      expect(events.at(-1)?.what).toMatch(/exit.* 7/);
      expect(await callTool(urlOf(platform, id), "count")).toMatchObject({ status: 502, code: "instance.failed" });
    }
    for (const { id } of [elsewhere, alone]) expect((await callTool(urlOf(platform, id), "count")).text).toBe("1");
    expect((await platform.create(shared, { owner: "ada" })).status).toBe("Running");
    for (const { id } of [elsewhere, alone]) await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("fails the call in flight and its instance if it is killed", async () => {
    const { id } = await platform.create(own);
    const call = callTool(urlOf(platform, id), "wait", { ms: 60_000 });
    await vi.waitFor(async () => expect(await callFunction(platform, id, "waits")).toEqual(["begun"]), soon);
    process.kill(Number(await callFunction(platform, id, "pid")), "SIGKILL");
    expect(await call).toMatchObject({ status: 502 });
    expect((await untilStatus(platform, id, "Failed")).reason).toContain("killed by SIGKILL");
  });
});

describe("idle instances", () => {
  it("are ended after the idle time, but not while they are used or during a long call", async () => {
    await using platform = await startPlatform({ flags: { idleAfter: "1s" } });
    const ref = await publish(platform, projects.probe, { isolation: "shared" });
    // The start takes longer than the idle time, and does not count as idle.
    const slow = { environment_variables: { SETUP_MS: "1200" } };
    const [idle, used, busy] = await Promise.all([platform.create(ref), platform.create(ref, slow), platform.create(ref, slow)]);
    const long = callTool(urlOf(platform, busy.id), "wait", { ms: 1_700 });
    const began = performance.now();
    while (performance.now() - began < 1_600) {
      expect((await callTool(urlOf(platform, used.id), "count")).status).toBe(200);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect((await look(platform, idle.id)).status).toBe("Terminated");
    expect((await look(platform, idle.id)).reason).toBe("it was idle for 1 s");
    expect((await look(platform, used.id)).status).toBe("Running");
    expect((await long).text).toBe("waited");
    const ended = await untilStatus(platform, used.id, "Terminated");
    expect(ended.reason).toBe("it was idle for 1 s");
  });
});

describe("a server that is stopped", () => {
  it("finishes the calls in flight, refuses new ones, and leaves nothing", async () => {
    await using platform = await startPlatform();
    const ref = await publish(platform, projects.probe);
    const [{ id }, other] = await Promise.all([platform.create(ref), platform.create(ref)]);
    const call = callTool(urlOf(platform, id), "wait", { ms: 1_500 });
    await vi.waitFor(async () => expect(await callFunction(platform, id, "waits")).toEqual(["begun"]), soon);
    const began = performance.now();
    const closing = platform.close();
    const late = await callTool(urlOf(platform, other.id), "count").catch(() => null);
    expect(late?.code ?? "refused").toMatch(/server\.draining|refused/);
    expect((await call).text).toBe("waited");
    await closing;
    // As soon as the last call has its response, even if its client keeps the connection open.
    expect(performance.now() - began).toBeLessThan(6_000);
    await expect(fetch(`${platform.controlUrl}/health`)).rejects.toThrow("fetch failed");
  });
});
