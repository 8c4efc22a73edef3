import { afterEach, describe, expect, it } from "vitest";
import { defineEnvironment } from "../definition/definition.ts";
import { type Served, type ServeOptions, serve } from "../serve/serve.ts";
import { callTool, sessionMessage, toolCall } from "./testing/calls.ts";
import { converse, exchange, hangUpWhen, jsonHeaders, openSession } from "./testing/exchange.ts";
import { gate } from "./testing/gate.ts";

const open: Served[] = [];

afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

async function start(options: ServeOptions = {}) {
  const wait = gate();
  const environment = defineEnvironment({
    setup: ({ instanceId }) => ({ owner: instanceId, count: 0 }),
    tools: [wait.tool, { name: "count", run: (_, { state }) => `${state.owner} ${++state.count}` }],
  });
  const served = await serve(environment, { port: 0, graceMs: 100, ...options });
  open.push(served);
  return { served, wait, url: `${served.url}/mcp` };
}

const isThere = async (url: string, sessionId: string) =>
  (await exchange(url, sessionMessage(sessionId, { id: 1, method: "tools/list" }))).status === 200;

describe("a session", () => {
  it("begins with initialize, and its answers carry its id", async () => {
    const { url } = await start();
    const sessionId = await openSession(url, "2025-06-18");
    expect(sessionId).toMatch(/^[0-9a-f]{32}$/);
    const listed = await exchange(url, sessionMessage(sessionId, { id: 1, method: "tools/list" }));
    expect(listed.headers["mcp-session-id"]).toBe(sessionId);
    expect(listed.messages).toMatchObject([{ result: { tools: [{ name: "wait" }, { name: "count" }] } }]);
    expect(await callTool(url, "count", {}, { sessionId })).toEqual({ content: [{ type: "text", text: "default 1" }] });
  });

  it("may listen on a stream of its own, one at a time", async () => {
    const { url } = await start({ pingMs: 2 });
    const sessionId = await openSession(url);
    const listening = { method: "GET", headers: { accept: "text/event-stream", "mcp-session-id": sessionId } };
    const stream = await converse(url, listening);
    expect(stream.status).toBe(200);
    expect(await stream.next()).toMatch(/^:/);
    expect((await exchange(url, listening)).status).toBe(409);
    stream.hangUp();
  });

  it("ends with DELETE, and the calls that it has running with it", async () => {
    const { url, wait } = await start();
    const sessionId = await openSession(url);
    const call = callTool(url, "wait", {}, { sessionId });
    const context = await wait.entered();
    expect((await exchange(url, { method: "DELETE", headers: { "mcp-session-id": sessionId } })).status).toBe(200);
    expect(await wait.aborted(context)).toBe("the session was ended");
    expect(await call).toMatchObject({ isError: true });
    expect(await isThere(url, sessionId)).toBe(false);
  });

  it("that is not known is answered 404, whatever is asked of it", async () => {
    const { url } = await start();
    const headers = { ...jsonHeaders, "mcp-session-id": "stranger" };
    const error = { code: -32001, message: "Session not found" };
    expect(await exchange(url, sessionMessage("stranger", { id: 7, method: "tools/list" }))).toMatchObject({
      status: 404,
      messages: [{ id: 7, error }],
    });
    for (const method of ["GET", "DELETE"]) {
      expect(await exchange(url, { method, headers })).toMatchObject({ status: 404, messages: [{ id: null, error }] });
    }
  });

  it("makes room for a new one when there are too many, unless it is at work", async () => {
    const { url, wait } = await start({ maxSessions: 2 });
    const [busy, idle] = [await openSession(url), await openSession(url)];
    const call = callTool(url, "wait", {}, { sessionId: busy });
    await wait.entered();
    // Used last, but the busy one stays all the same.
    expect(await isThere(url, idle)).toBe(true);
    const newest = await openSession(url);
    expect(await isThere(url, idle)).toBe(false);
    expect(await isThere(url, newest)).toBe(true);
    wait.open("done");
    expect(await call).toMatchObject({ content: [{ text: "done" }] });
    expect(await isThere(url, busy)).toBe(true);
  });

  it("makes room in the order of last use", async () => {
    const { url } = await start({ maxSessions: 2 });
    const [first, second] = [await openSession(url), await openSession(url)];
    expect(await isThere(url, first)).toBe(true);
    await openSession(url);
    expect(await isThere(url, second)).toBe(false);
    expect(await isThere(url, first)).toBe(true);
  });
});

describe("cancelling", () => {
  const cancel = (requestId: string | number, reason?: string) => ({
    method: "notifications/cancelled",
    params: { requestId, ...(reason !== undefined && { reason }) },
  });

  it("a call by its id fires the tool's signal with the client's reason", async () => {
    const { url, wait } = await start();
    const sessionId = await openSession(url);
    const call = callTool(url, "wait", {}, { sessionId, id: "c-1" });
    const context = await wait.entered();
    expect((await exchange(url, sessionMessage(sessionId, cancel("c-1", "changed my mind")))).status).toBe(202);
    expect(await wait.aborted(context)).toBe("the client cancelled the call: changed my mind");
    expect(await call).toMatchObject({ isError: true });
  });

  it("works without a reason, and on the SDK's path", async () => {
    const { url, wait } = await start();
    const sessionId = await openSession(url);
    const stream = await converse(url, toolCall("wait", {}, { sessionId, id: 5, isOdd: true }));
    const context = await wait.entered();
    expect((await exchange(url, sessionMessage(sessionId, cancel(5, "enough")))).status).toBe(202);
    expect(await wait.aborted(context)).toContain("enough");
    stream.hangUp();
  });

  it("leaves other calls alone, those of other sessions too", async () => {
    const { url, wait } = await start();
    const [one, other] = [await openSession(url), await openSession(url)];
    const call = callTool(url, "wait", {}, { sessionId: one, id: 1 });
    const context = await wait.entered();
    for (const [sessionId, id] of [
      [one, 2],
      [one, "1"],
      [other, 1],
    ] as const) {
      expect((await exchange(url, sessionMessage(sessionId, cancel(id)))).status).toBe(202);
    }
    expect(context.signal.aborted).toBe(false);
    wait.open("untouched");
    expect(await call).toMatchObject({ content: [{ text: "untouched" }] });
  });
});

describe("hanging up", () => {
  it.each([false, true])("fires the tool's signal where there is no session to cancel by (on the SDK's path: %s)", async (isOdd) => {
    const { url, wait } = await start();
    const entered = wait.entered();
    await hangUpWhen(entered, url, toolCall("wait", {}, { isOdd }));
    expect(await wait.aborted(await entered)).not.toBe("");
  });

  it.each([false, true])("lets a session's call go on (on the SDK's path: %s)", async (isOdd) => {
    const { url, wait, served } = await start();
    const sessionId = await openSession(url);
    const entered = wait.entered();
    await hangUpWhen(entered, url, toolCall("wait", {}, { sessionId, isOdd }));
    // Another round trip: whatever the server does about the broken connection, it has done by now.
    expect(await isThere(url, sessionId)).toBe(true);
    expect((await entered).signal.aborted).toBe(false);
    expect(served.host.callsInFlight).toBe(1);
    wait.open("to nobody");
    expect(await callTool(url, "count", {}, { sessionId })).toMatchObject({ content: [{ text: "default 1" }] });
  });
});

describe("instances in one process", () => {
  it("see neither each other's sessions nor each other's state", async () => {
    const { served, url } = await start();
    const at = (id: string) => `${served.url}/env-instance/${id}/mcp`;
    for (const id of ["a", "b"]) await served.host.create({ id });
    const sessionId = await openSession(at("a"));
    expect(await callTool(at("a"), "count", {}, { sessionId })).toMatchObject({ content: [{ text: "a 1" }] });
    expect(await callTool(at("a"), "count", {}, { sessionId, isOdd: true })).toMatchObject({ content: [{ text: "a 2" }] });
    for (const elsewhere of [at("b"), url]) expect(await isThere(elsewhere, sessionId)).toBe(false);
    expect(await callTool(at("b"), "count")).toMatchObject({ content: [{ text: "b 1" }] });
  });

  it("take their sessions, streams and calls with them when they are deleted", async () => {
    const { served, wait } = await start();
    await served.host.create({ id: "a" });
    const url = `${served.url}/env-instance/a/mcp`;
    const sessionId = await openSession(url);
    const stream = await converse(url, { method: "GET", headers: { accept: "text/event-stream", "mcp-session-id": sessionId } });
    const call = callTool(url, "wait", {}, { sessionId });
    const context = await wait.entered();
    expect((await exchange(`${served.url}/env-instance/a`, { method: "DELETE" })).status).toBe(200);
    expect(context.signal.aborted).toBe(true);
    expect(await call).toMatchObject({ isError: true });
    expect(await stream.next()).toBeNull();
    expect((await exchange(url, sessionMessage(sessionId, { id: 1, method: "tools/list" }))).status).toBe(404);
    await served.host.create({ id: "a" });
    expect(await isThere(url, sessionId)).toBe(false);
  });
});
