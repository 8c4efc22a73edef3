import type { InstanceRecord, ServiceRecord } from "@aenv/contract";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const soon = { timeout: 20_000, interval: 20 };
type Body = Record<string, unknown>;

let platform: Platform;
let trainer: { readonly authorization: string };
let probe: InstanceRecord;
let agent: InstanceRecord;
beforeAll(async () => {
  platform = await startPlatform({ flags: { access: "on", idsAreKeys: false } });
  trainer = await platform.token("ada", "admin");
  const packed = await publish(platform, projects.conformanceAgent, { isolation: "shared", headers: trainer });
  agent = await platform.create(packed, {}, trainer);
  probe = await platform.create(await publish(platform, projects.probe, { headers: trainer }), {}, trainer);
}, 180_000);
afterAll(() => platform?.close());

const baseOf = (instance: InstanceRecord) => String(instance.a2a_url);

async function cardAt(base: string, headers: Record<string, string> = {}): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${base}.well-known/agent-card.json`, { headers });
  return { status: response.status, body: (await response.json()) as Body };
}

function post(url: string, method: string, params: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return fetch(url, { method: "POST", headers: { "content-type": "application/json", "a2a-version": "1.0", ...headers }, body });
}

const send = async (url: string, method: string, params: unknown, headers: Record<string, string> = {}) =>
  (await (await post(url, method, params, headers)).json()) as Body;

const tool = (name: string, args: object = {}) => ({
  message: { messageId: "m", role: "ROLE_USER", parts: [{ data: { tool: name, arguments: args } }] },
});
const text = (words: string) => ({ message: { messageId: "m", role: "ROLE_USER", parts: [{ text: words }] } });

describe("the link of an agent", () => {
  it("opens A2A: its card names the link, whatever the client says about the address", async () => {
    for (const headers of [{}, { "aenv-base-url": "https://evil.example/", "aenv-needs-token": "1" }]) {
      const { status, body } = await cardAt(baseOf(agent), headers);
      expect(status).toBe(200);
      expect(body).toMatchObject({ name: "conformance-agent-shared", url: `${baseOf(agent)}a2a`, protocolVersion: "0.3" });
      expect(body.securitySchemes).toBeUndefined();
    }
    const again = await platform.create(`${agent.environment}`, {}, trainer);
    expect((await send(`${baseOf(agent)}a2a`, "SendMessage", text("hi"))).result).toMatchObject({ task: { id: "task-1" } });
    expect((await send(`${baseOf(again)}a2a`, "ListTasks", {})).result).toMatchObject({ tasks: [] });
    expect((await fetch(`${baseOf(agent)}a2a/tasks/task-1`)).status).toBe(200);
  });

  it("opens the tools over A2A, and nothing of the trainer API", async () => {
    expect((await send(`${baseOf(probe)}a2a`, "SendMessage", tool("count"))).result).toMatchObject({
      task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "1" }] }] },
    });
    for (const path of ["task/reward", "task/reset", "state/snapshot", "episode", "health", "functions/list", "a2a/../task/reward"])
      expect([path, (await fetch(baseOf(probe) + path, { method: "POST", body: "{}" })).status]).toEqual([path, 403]);
    expect((await send(`${baseOf(probe)}a2a`, "SendMessage", tool("task/reward"))).result).toMatchObject({
      task: { status: { state: "TASK_STATE_REJECTED" } },
    });
  });

  it("keeps its conversations in a fork", async () => {
    await send(`${baseOf(agent)}a2a`, "SendMessage", { message: { ...text("one").message, contextId: "shop" } });
    const [fork] = (await platform.demand("POST", `/env-instance/${agent.id}/fork`, { count: 1 }, trainer)) as InstanceRecord[];
    for (const one of [agent, fork as InstanceRecord]) {
      const { result } = await send(`${baseOf(one)}a2a`, "SendMessage", { message: { ...text("two").message, contextId: "shop" } });
      expect(JSON.stringify(result)).toContain("turn 2");
    }
    expect(baseOf(fork as InstanceRecord)).not.toBe(baseOf(agent));
  });
});

it("an instance's own path needs a token, which its card says", async () => {
  const base = urlOf(platform, probe.id, "/");
  expect((await fetch(`${base}.well-known/agent-card.json`)).status).toBe(401);
  const { body } = await cardAt(base, trainer);
  expect(body).toMatchObject({ url: `${base}a2a`, securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } } });
  const ofAgent = await platform.token("ada", "agent");
  expect((await cardAt(base, ofAgent)).status).toBe(200);
  expect((await fetch(`${base}a2a/tasks`, { headers: ofAgent })).status).toBe(200);
});

it("the card of a service names one replica, which keeps its tasks", { timeout: 60_000 }, async () => {
  const { id } = (await platform.demand(
    "POST",
    "/env-service",
    { envName: String(probe.environment), replicas: 2 },
    trainer,
  )) as ServiceRecord;
  await vi.waitFor(async () => {
    expect(await platform.demand("GET", `/env-service/${id}`, undefined, trainer)).toMatchObject({ available_replicas: 2 });
  }, soon);
  const base = `${platform.dataUrl}/env-service/${id}/`;
  const names = new Set<string>();
  for (let times = 0; times < 4; times++) {
    const response = await fetch(`${base}.well-known/agent-card.json`, { headers: trainer });
    expect(response.headers.get("cache-control")).toBe("max-age=0");
    const { url } = (await response.json()) as { url: string };
    names.add(url);
    const { result } = await send(url, "SendMessage", tool("count"), trainer);
    const { id: task } = (result as { task: Body }).task;
    expect((await send(url, "GetTask", { id: task }, trainer)).result).toMatchObject({ id: task });
  }
  expect(names.size).toBe(2);
  const [url = ""] = names;
  expect((await fetch(url.replace(/replica\/[0-9a-f]+/, "replica/0000000000000000"), { method: "POST", headers: trainer })).status).toBe(
    404,
  );
  expect((await fetch(url, { method: "POST" })).status).toBe(401);
});

it("a stream whose sandbox is lost ends with an error of JSON-RPC", { timeout: 60_000 }, async () => {
  const doomed = await platform.create(String(probe.environment), {}, trainer);
  const response = await post(`${baseOf(doomed)}a2a`, "SendStreamingMessage", tool("wait", { ms: 60_000 }));
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let said = new TextDecoder().decode((await reader.read()).value);
  expect(said).toContain('"task"');
  void callTool(String(doomed.agent_url), "crash").catch(() => {});
  for (let part = await reader.read(); !part.done; part = await reader.read()) said += new TextDecoder().decode(part.value);
  const last = said.trim().split("\n").at(-1) ?? "";
  expect(JSON.parse(last.replace(/^data: /, ""))).toMatchObject({
    jsonrpc: "2.0",
    id: 1,
    error: { code: -32_603, data: [{ reason: "sandbox.lost" }] },
  });
});
