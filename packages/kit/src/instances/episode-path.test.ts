import { readBoundedText } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { defineEnvironment, type EnvironmentDefinition, type PathStep } from "../definition/definition.ts";
import { callTool } from "../mcp/testing/calls.ts";
import { type Served, type ServeOptions, serve } from "../serve/serve.ts";
import { EpisodePath } from "./episode-path.ts";

/** The reward is 1 if the path is the task of the episode; `seen` has the last path that a reward got. */
let seen: readonly PathStep[] = [];
const gate = { open: Promise.resolve() };
const shop = defineEnvironment({
  setup: () => ({ sold: 0 }),
  tools: [
    {
      name: "sell",
      input: z.object({ count: z.number().default(1), note: z.object({ by: z.string() }).optional() }),
      run: ({ count, note }, { state }) => {
        if (note !== undefined) note.by = "changed";
        if (count < 0) throw new Error("nobody sells less than nothing");
        state.sold += count;
        return state.sold;
      },
    },
    {
      name: "wait",
      run: async () => {
        await gate.open;
        return "done";
      },
    },
  ],
  rewards: [
    {
      name: "steps",
      path: true,
      score: ({ path }) => {
        seen = path;
        return path.length;
      },
    },
  ],
});

const open: Served[] = [];
afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

async function start(environment: unknown = shop, options: Partial<ServeOptions> = {}): Promise<Served> {
  const served = await serve(environment as EnvironmentDefinition, {
    name: "shop",
    version: "1.0.0",
    port: 0,
    writeLog: () => {},
    ...options,
  });
  open.push(served);
  return served;
}

async function ask(served: Served, path: string, body: unknown = {}): Promise<{ readonly data?: unknown; readonly message?: string }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${served.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return JSON.parse(await readBoundedText(response.body, { maxBytes: 1_000_000 }));
}

async function pathOf(served: Served, instance = "default"): Promise<readonly PathStep[]> {
  await ask(served, `/env-instance/${instance}/task/reward`);
  return seen;
}

const say = (served: Served, content: string) => ask(served, "/episode/reply", { message: { role: "assistant", content } });
const mcp = (served: Served, instance = "default") => `${served.url}/env-instance/${instance}/mcp`;

describe("the path of an episode", () => {
  it.each([true, false])("has the calls and words in order, with the arguments as sent (fast path: %s)", async (useFastPath) => {
    const served = await start(shop, { useFastPath });
    await callTool(mcp(served), "sell", {});
    await callTool(mcp(served), "sell", { count: -1 });
    await callTool(mcp(served), "sell", { count: "many" });
    await callTool(mcp(served), "sell", { count: 2, note: { by: "ann" } });
    await say(served, "sold");
    expect(await pathOf(served)).toEqual([
      { tool: "sell", arguments: {}, isError: false },
      { tool: "sell", arguments: { count: -1 }, isError: true },
      { tool: "sell", arguments: { count: 2, note: { by: "ann" } }, isError: false },
      { say: "sold" },
    ]);
  });

  it("goes with a fork and a snapshot, and then grows apart", async () => {
    const served = await start();
    await callTool(mcp(served), "sell", { count: 1 });
    const { data: snapshot } = await ask(served, "/state/snapshot");
    await served.host.fork("default", ["copy"]);
    const { data: forked } = await ask(served, "/env-instance", { id: "other", snapshot });
    expect(forked).toMatchObject({ id: "other" });
    await callTool(mcp(served), "sell", { count: 2 });
    const first = { tool: "sell", arguments: { count: 1 }, isError: false };
    for (const copy of ["copy", "other"]) expect(await pathOf(served, copy)).toEqual([first]);
    expect(await pathOf(served)).toEqual([first, { ...first, arguments: { count: 2 } }]);
    await ask(served, "/state/restore", { snapshot });
    expect(await pathOf(served)).toEqual([first]);
    await ask(served, "/task/reset", {});
    expect(await pathOf(served)).toEqual([]);
  });

  it("counts a call as failed that runs while a copy is made", async () => {
    const served = await start();
    const held = Promise.withResolvers<void>();
    gate.open = held.promise;
    const waiting = callTool(mcp(served), "wait");
    while ((await pathOf(served)).length === 0);
    const { data: snapshot } = await ask(served, "/state/snapshot");
    held.resolve();
    await waiting;
    expect(await pathOf(served)).toEqual([{ tool: "wait", arguments: {}, isError: false }]);
    await ask(served, "/env-instance", { id: "copy", snapshot });
    expect(await pathOf(served, "copy")).toEqual([{ tool: "wait", arguments: {}, isError: true }]);
  });

  it("is refused in a snapshot if it is no path", async () => {
    const served = await start();
    const { data } = await ask(served, "/state/snapshot");
    for (const path of [
      "sell",
      [{ tool: "sell" }],
      [{ tool: 1, arguments: {}, isError: false }],
      [{ say: 3 }],
      [{ say: "a", tool: "b" }],
    ]) {
      const answer = await ask(served, "/state/restore", { snapshot: { ...(data as object), path } });
      expect(JSON.stringify(answer)).toContain("its path is not a list of calls and words");
    }
  });

  it("is not recorded if no reward wants it, and a reward that did not ask for it gets an error", async () => {
    const silent = {
      tools: shop.tools,
      setup: shop.setup,
      rewards: [{ name: "steps", score: ({ path }: { path: unknown[] }) => path.length }],
    };
    const served = await start(silent);
    await callTool(mcp(served), "sell", {});
    expect(await ask(served, "/state/snapshot")).not.toMatchObject({ data: { path: expect.anything() } });
    expect(JSON.stringify(await ask(served, "/task/reward"))).toContain("recorded only for rewards with 'path: true'");
  });

  it("makes words an ability of an environment without a reply, and they end the episode", async () => {
    const served = await start();
    const abilities = await (await fetch(`${served.url}/episode`)).json();
    expect(abilities).toMatchObject({ data: { reply: true } });
    expect(await say(served, "bye")).toMatchObject({ data: { messages: [], status: { done: true } } });
  });
});

describe("the limits of a path", () => {
  const result = { content: [] };

  it("have further calls refused instead of forgotten", () => {
    const path = new EpisodePath({ maxSteps: 2, maxCharacters: 100 });
    let runs = 0;
    const run = () => {
      runs++;
      return result;
    };
    expect(path.call("a", "{}", run)).toBe(result);
    path.say("hello");
    expect(path.call("b", "{}", run)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("its limit of 2 calls") }],
    });
    expect(() => path.say("more")).toThrow("its limit of 2 calls");
    expect(runs).toBe(1);
    expect(path.read()).toHaveLength(2);
  });

  it("count the characters of arguments and words", () => {
    const path = new EpisodePath({ maxSteps: 100, maxCharacters: 10 });
    path.say("12345678");
    expect(path.call("a", '{"n":1}', () => result)).toMatchObject({ isError: true });
    expect(path.call("a", "{}", () => result)).toBe(result);
  });
});
