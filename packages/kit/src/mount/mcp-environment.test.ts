import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { compileEnvironment } from "../compile/environment.ts";
import { quietHooks } from "../instances/call.ts";
import { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { setDataRoot } from "../load/load.ts";
import { callTool, sessionMessage, toolCall } from "../mcp/testing/calls.ts";
import { exchange, openSession } from "../mcp/testing/exchange.ts";
import { type Served, serve } from "../serve/serve.ts";
import { type McpCommandOptions, mcpEnvironment } from "./mcp-environment.ts";
import type { PinnedTools } from "./tool-list.ts";
import { pinTools } from "./tool-list.ts";

const hosts: Host[] = [];
const open: Served[] = [];

afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close("the test is over");
  for (const served of open.splice(0)) await served.close();
});

type More = Partial<McpCommandOptions> & { readonly behaviour?: string };

function small({ behaviour = "well", ...more }: More = {}) {
  setDataRoot(join(import.meta.dirname, "fixtures"));
  return mcpEnvironment({ command: ["node", "../vendor/server.js", behaviour], workspace: "data", ...more });
}

async function hostOf(more: More = {}): Promise<Host> {
  const host = new Host(await compileEnvironment(small(more), { name: "small", version: "1.0.0" }), () => {});
  hosts.push(host);
  return host;
}

const create = async (more: More = {}) => (await hostOf(more)).create({ seed: 1 });

async function call(instance: Instance, name: string, args: object = {}): Promise<{ text: string; isError?: boolean }> {
  const tool = instance.tools.get(name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  const { content, isError } = await instance.callTool(tool, args, quietHooks());
  return { text: content.map((block) => String(block.text)).join(""), ...(isError === true && { isError }) };
}

function isRunning(pid: number): boolean {
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8") : "";
  return stat !== "" && !/\) Z /.test(stat);
}

const score = (instance: Instance) => instance.endpoints.reward({}, quietHooks());
const noted = {
  name: "noted",
  score: async ({ state }: { state: { callTool(name: string): Promise<unknown> } }) => {
    const { content } = (await state.callTool("notes")) as { content: readonly { text: string }[] };
    return content[0]?.text.includes("milk") ? 1 : 0;
  },
};

async function pinned(): Promise<PinnedTools> {
  const instance = await create();
  const listed = [...instance.tools.values()].map(({ descriptor }) => descriptor);
  for (const host of hosts.splice(0)) await host.close("pinned");
  return pinTools(listed);
}

describe("an MCP server as an environment", () => {
  it("offers the server's tools, and rewards that look at what it did", async () => {
    const instance = await create({ rewards: [noted as never] });
    expect([...instance.tools.keys()].slice(0, 2)).toEqual(["note", "notes"]);
    expect(await score(instance)).toBe(0);
    expect(await call(instance, "note", { text: "milk" })).toEqual({ text: "noted" });
    expect(await score(instance)).toBe(1);
    expect(await call(instance, "sum", { a: 2 })).toEqual({ text: "3" });
  });

  it("has a folder of its own for each episode, also for what the server writes beside its own file", async () => {
    const host = await hostOf();
    const [one, other] = [await host.create({ id: "one" }), await host.create({ id: "other" })];
    await call(one, "note", { text: "milk" });
    expect(await call(other, "notes")).toEqual({ text: "none" });
    await host.reset("one", {});
    expect(await call(one, "notes")).toEqual({ text: "none" });
    expect(existsSync(join(import.meta.dirname, "fixtures/vendor/notes.txt"))).toBe(false);
    const [roots, cwd, hasFiles] = JSON.parse((await call(one, "roots")).text);
    expect([roots[0].name, roots[0].uri.endsWith(cwd), hasFiles]).toEqual(["workspace", true, true]);
    await host.close("the end");
    expect(existsSync(cwd)).toBe(false);
  });

  it("gives the server only variables that it names, with values of the instance", async () => {
    process.env.SECRET_OF_KIT = "hidden";
    const host = await hostOf({ env: { KEY: `Bearer ${"$"}{TOKEN}` } });
    await expect(host.create()).rejects.toThrow(/variable TOKEN/);
    const instance = await host.create({ environment_variables: { TOKEN: "abc" } });
    const env = JSON.parse((await call(instance, "env")).text);
    expect([env.KEY, env.SECRET_OF_KIT]).toEqual(["Bearer abc", undefined]);
    delete process.env.SECRET_OF_KIT;
  });

  it("refuses what the server asks for, but for roots", async () => {
    expect((await call(await create(), "ask")).text).toMatch(/-32601.*sampling\/createMessage/);
  });

  it("checks arguments before the server gets them, and keeps the digest of a refused call", async () => {
    const instance = await create();
    const digest = () => instance.authorEpisode.digest(quietHooks());
    const before = await digest();
    expect(await call(instance, "note")).toMatchObject({ isError: true, text: expect.stringMatching(/text: is required/) });
    expect(await digest()).toEqual(before);
    await call(instance, "note", { text: "milk" });
    expect(await digest()).not.toEqual(before);
  });
});

describe("a server that ends", () => {
  it("makes the call and the reward sandbox.lost, with its last words", async () => {
    const instance = await create({ rewards: [noted as never] });
    await expect(call(instance, "crash")).rejects.toMatchObject({
      code: "sandbox.lost",
      message: expect.stringMatching(/exit code 3.*out of luck/s),
    });
    await expect(call(instance, "notes")).rejects.toMatchObject({ code: "sandbox.lost" });
    await expect(score(instance)).rejects.toMatchObject({ code: "sandbox.lost" });
    expect(await instance.health()).toMatchObject({ status: "healthy", server: expect.stringMatching(/exit code 3/) });
  });

  it("is started again with onExit restart, and the call that it lost is a failure that the agent sees", async () => {
    const instance = await create({ onExit: "restart", rewards: [{ name: "one", score: () => 1 }] });
    expect(await call(instance, "crash")).toMatchObject({ isError: true, text: expect.stringMatching(/started again/) });
    expect(await call(instance, "sum")).toEqual({ text: "2" });
    expect(await score(instance)).toBe(1);
    // A server that always ends is not started for ever.
    for (let at = 0; at < 12; at++) await call(instance, "crash").catch(() => {});
    expect((await call(instance, "sum")).text).toMatch(/it ended 11 times/);
  });

  it("cannot be forked without a sandbox, unless it has no state", async () => {
    const host = await hostOf();
    const { id } = await host.create();
    await expect(host.fork(id, 1)).rejects.toMatchObject({ code: "snapshot.unsupported" });
    const stateless = await hostOf({ onExit: "restart" });
    const parent = await stateless.create();
    const [copy] = await stateless.fork(parent.id, 1);
    expect(await call(copy as Instance, "sum", { a: 4 })).toEqual({ text: "5" });
  });

  it("takes its children with it at the end of the episode", async () => {
    const host = await hostOf();
    const pids = JSON.parse((await call(await host.create(), "fork")).text) as number[];
    expect(pids.map(isRunning)).toEqual([true, true]);
    await host.close("the end");
    await expect.poll(() => pids.map(isRunning)).toEqual([false, false]);
  });
});

describe("a server that misbehaves", () => {
  it("and does not start fails the setup with its reason", async () => {
    await expect(create({ behaviour: "broken" })).rejects.toMatchObject({
      code: "sandbox.start_failed",
      message: expect.stringMatching(/exit code 7/),
    });
    await expect(create({ behaviour: "silent", startTimeoutMs: 200 })).rejects.toThrow(/did not answer within 200 ms/);
    await expect(create({ command: ["no-such-program"] })).rejects.toThrow(/no program 'no-such-program'/);
  });

  it("and never answers is a failure that the agent sees after the deadline", async () => {
    const instance = await create({ callTimeoutMs: 100 });
    expect(await call(instance, "slow")).toMatchObject({ isError: true, text: expect.stringMatching(/timed out after 100 ms/) });
    expect(await call(instance, "sum")).toEqual({ text: "2" });
  });

  it("and floods, with a line that never ends or with messages, is ended", { timeout: 30_000 }, async () => {
    await expect(call(await create(), "flood")).rejects.toMatchObject({
      code: "sandbox.lost",
      message: expect.stringMatching(/line of more than/),
    });
    await expect(call(await create(), "chatter")).rejects.toMatchObject({
      code: "sandbox.lost",
      message: expect.stringMatching(/nobody asked for/),
    });
  });
});

describe("a server whose tools are not the pinned ones", () => {
  it("offers the pinned tools with their pinned words, and its health says what has changed", async () => {
    const instance = await create({ pinned: await pinned(), behaviour: "changed" });
    expect(instance.tools.get("note")?.descriptor.description).toBe("Writes a note.");
    expect(instance.tools.has("steal")).toBe(false);
    expect(await instance.health()).toMatchObject({
      status: "healthy",
      tools_changed: { added: ["steal"], removed: [], changed: ["note"] },
    });
  });

  it("is refused with strict", async () => {
    await expect(create({ pinned: await pinned(), behaviour: "changed", strict: true })).rejects.toThrow(
      /not those of tools\.json \(new: steal; changed: note\)/,
    );
    expect(await (await create({ pinned: await pinned(), strict: true })).health()).toEqual({ status: "healthy" });
  });

  it("is noticed when it changes them in the middle of an episode", async () => {
    const instance = await create({ pinned: await pinned() });
    expect(await instance.health()).toEqual({ status: "healthy" });
    await call(instance, "change");
    expect(await instance.health()).toMatchObject({ tools_changed: { added: ["steal"] } });
    expect(instance.tools.has("steal")).toBe(false);
  });
});

describe("resources and prompts of a mounted server", () => {
  it("are passed on to the agent's client, with and without a session", async () => {
    const served = await serve(small(), { port: 0, name: "small", version: "1.0.0" });
    open.push(served);
    const url = `${served.url}/mcp`;
    const sessionId = await openSession(url, "2025-06-18");
    const ask = async (method: string, params: object = {}) =>
      (await exchange(url, sessionMessage(sessionId, { id: 1, method, params }))).messages[0] as { result: object };
    expect(await ask("resources/list")).toMatchObject({ result: { resources: [{ uri: "note://all" }] } });
    expect(await ask("resources/read", { uri: "note://all" })).toMatchObject({ result: { contents: [{ text: "all notes" }] } });
    expect(await ask("resources/read", { uri: "note://none" })).toMatchObject({
      error: { code: -32602, message: expect.stringMatching(/no note/) },
    });
    expect(await ask("prompts/get", { name: "greet" })).toMatchObject({ result: { messages: [{ content: { text: "prompt greet" } }] } });
    const { headers } = toolCall("sum");
    const stateless = await exchange(url, { headers: headers ?? {}, body: { jsonrpc: "2.0", id: 1, method: "prompts/list", params: {} } });
    expect(stateless.messages).toMatchObject([{ result: { prompts: [{ name: "greet" }] } }]);
    expect(await callTool(url, "sum", { a: 1 })).toMatchObject({ structuredContent: { sum: 2 } });
  });
});
