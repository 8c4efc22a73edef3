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
  it("begins with initialize, and its responses have its id", async () => {
    const { url } = await start();
    const sessionId = await openSession(url, "2025-06-18");
    expect(sessionId).toMatch(/^[0-9a-f]{32}$/);
    const listed = await exchange(url, sessionMessage(sessionId, { id: 1, method: "tools/list" }));
    expect(listed.headers["mcp-session-id"]).toBe(sessionId);
    expect(listed.messages).toMatchObject([{ result: { tools: [{ name: "wait" }, { name: "count" }] } }]);
    expect(await callTool(url, "count", {}, { sessionId })).toEqual({ content: [{ type: "text", text: "default 1" }] });
  });

  it("may open a stream, one at a time", async () => {
    const { url } = await start({ pingMs: 2 });
    const sessionId = await openSession(url);
    const listening = { method: "GET", headers: { accept: "text/event-stream", "mcp-session-id": sessionId } };
    const stream = await converse(url, listening);
    expect(stream.status).toBe(200);
    expect(await stream.next()).toMatch(/^:/);
    expect((await exchange(url, listening)).status).toBe(409);
    stream.hangUp();
  });

  it("ends with DELETE, which aborts its running calls", async () => {
    const { url, wait } = await start();
    const sessionId = await openSession(url);
    const call = callTool(url, "wait", {}, { sessionId });
    const context = await wait.entered();
    expect((await exchange(url, { method: "DELETE", headers: { "mcp-session-id": sessionId } })).status).toBe(200);
    expect(await wait.aborted(context)).toBe("the session was ended");
    expect(await call).toMatchObject({ isError: true });
    expect(await isThere(url, sessionId)).toBe(false);
  });

  it("that is unknown is answered with 404, for any request", async () => {
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

  it("is ended when there are too many, unless it has running calls", async () => {
    const { url, wait } = await start({ maxSessions: 2 });
    const [busy, idle] = [await openSession(url), await openSession(url)];
    const call = callTool(url, "wait", {}, { sessionId: busy });
    await wait.entered();
    // Least recently used, but it has a running call, so it stays.
    expect(await isThere(url, idle)).toBe(true);
    const newest = await openSession(url);
    expect(await isThere(url, idle)).toBe(false);
    expect(await isThere(url, newest)).toBe(true);
    wait.open("done");
    expect(await call).toMatchObject({ content: [{ text: "done" }] });
    expect(await isThere(url, busy)).toBe(true);
  });

  it("is ended in the order of last use", async () => {
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

  it("does not affect other calls, nor those of other sessions", async () => {
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

describe("a disconnect", () => {
  it.each([false, true])("fires the tool's signal without a session (on the SDK's path: %s)", async (isOdd) => {
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
    // Another round trip, so that the server has handled the lost connection.
    expect(await isThere(url, sessionId)).toBe(true);
    expect((await entered).signal.aborted).toBe(false);
    expect(served.host.callsInFlight).toBe(1);
    wait.open("to nobody");
    expect(await callTool(url, "count", {}, { sessionId })).toMatchObject({ content: [{ text: "default 1" }] });
  });
});

describe("instances in one process", () => {
  it("share neither sessions nor state", async () => {
    const { served, url } = await start();
    const at = (id: string) => `${served.url}/env-instance/${id}/mcp`;
    for (const id of ["a", "b"]) await served.host.create({ id });
    const sessionId = await openSession(at("a"));
    expect(await callTool(at("a"), "count", {}, { sessionId })).toMatchObject({ content: [{ text: "a 1" }] });
    expect(await callTool(at("a"), "count", {}, { sessionId, isOdd: true })).toMatchObject({ content: [{ text: "a 2" }] });
    for (const elsewhere of [at("b"), url]) expect(await isThere(elsewhere, sessionId)).toBe(false);
    expect(await callTool(at("b"), "count")).toMatchObject({ content: [{ text: "b 1" }] });
  });

  it("end their sessions, streams and calls when they are deleted", async () => {
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
