import { type CallToolResult, type ChatMessage, noAbilities } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { compileEnvironment } from "../compile/environment.ts";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { registerTool, takeRegistered } from "../definition/registry.ts";
import { quietHooks } from "./call.ts";
import { digestFrom } from "./episode-parts.ts";
import { Host } from "./host.ts";
import type { Instance } from "./instance.ts";

const hosts: Host[] = [];
const logged: string[] = [];

async function begin(definition: object, request: Parameters<Host["create"]>[0] = {}): Promise<Instance> {
  const compiled = await compileEnvironment(definition as EnvironmentDefinition, { name: "game", version: "1.0.0" });
  const host = new Host(compiled, (what, error) => void logged.push(`${what}: ${error instanceof Error ? error.message : error}`));
  hosts.push(host);
  return host.create(request);
}

afterEach(async () => {
  logged.length = 0;
  for (const one of hosts.splice(0)) await one.close("the test is over");
});

const say = (content: string): ChatMessage => ({ role: "assistant", content });

async function call(instance: Instance, name: string, controller = new AbortController()): Promise<CallToolResult> {
  const tool = instance.tools.get(name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  return instance.callTool(tool, {}, quietHooks(controller));
}

describe("an environment that says nothing about its episodes", () => {
  const plain = {
    setup: () => ({ n: 0 }),
    tasks: () => [{ id: "a", instruction: "Say hello." }],
    tools: [{ name: "go", run: () => "gone" }],
  };

  it("begins with the task's instruction as the user's message, or with no message", async () => {
    expect(await (await begin(plain, { task: "a" })).authorEpisode.prompt(quietHooks())).toEqual({
      messages: [{ role: "user", content: "Say hello." }],
    });
    expect(await (await begin({})).authorEpisode.prompt(quietHooks())).toEqual({ messages: [] });
  });

  it("begins with what observe returns", async () => {
    const observing = await begin({ setup: () => ({ n: 3 }), observe: async ({ state }: { state: object }) => state });
    expect(await observing.authorEpisode.prompt(quietHooks())).toEqual({ messages: [{ role: "user", content: '{"n":3}' }] });
  });

  it("ends when the agent speaks, and is never over before", async () => {
    const instance = await begin(plain);
    expect(await instance.authorEpisode.status(quietHooks())).toEqual({ done: false, reason: null });
    expect(await instance.authorEpisode.reply(say("Hello."), quietHooks())).toEqual({
      messages: [],
      status: { done: true, reason: "the agent has answered" },
    });
  });

  it("knows no solution, and sends no status with a tool's result", async () => {
    const instance = await begin(plain);
    expect(await instance.authorEpisode.oracle(quietHooks())).toEqual({ actions: null });
    expect(await call(instance, "go")).toEqual({ content: [{ type: "text", text: "gone" }] });
  });

  it("has no step rewards, and the error names what to add", async () => {
    await expect((await begin(plain)).authorEpisode.stepReward(quietHooks())).rejects.toMatchObject({
      code: "reward.missing",
      message: expect.stringMatching(/'game' defines no reward per step; add 'stepReward'/),
    });
  });

  it("has the digest of its snapshot: equal for equal states", async () => {
    const [a, b, other] = [await begin(plain), await begin(plain), await begin({ setup: () => ({ n: 1 }) })];
    const digest = await a.authorEpisode.digest(quietHooks());
    expect(await b.authorEpisode.digest(quietHooks())).toEqual(digest);
    expect(await other.authorEpisode.digest(quietHooks())).not.toEqual(digest);
  });

  it("has a digest only if its state is a value", async () => {
    takeRegistered();
    registerTool({ name: "go" }, () => "gone");
    const instance = await begin(takeRegistered() ?? {});
    await expect(instance.authorEpisode.digest(quietHooks())).rejects.toMatchObject({ code: "instance.unsupported" });
    expect(await instance.authorEpisode.prompt(quietHooks())).toEqual({ messages: [] });
  });

  it("is described as such, with a digest that changes with the code and the weight of a reward", async () => {
    const describe = async (definition: EnvironmentDefinition) =>
      (await compileEnvironment(definition, { name: "game", version: "1.0.0" })).abilities;
    expect(await describe({ ...(plain as EnvironmentDefinition), rewards: [] })).toEqual(noAbilities);
    const all = { prompt: true, reply: true, status: true, stepRewards: true, digest: true, oracle: true, observation: true, hear: true };
    expect(await describe(game as EnvironmentDefinition)).toMatchObject(all);
    const digests = [
      [{ name: "won", score: () => 1 }],
      [{ name: "won", score: () => 1 }],
      [{ name: "won", score: () => 0 }],
      [{ name: "won", score: () => 1, weight: 2 }],
    ].map(async (rewards) => (await describe({ ...(plain as EnvironmentDefinition), rewards })).rewardDigest);
    const [one, same, otherCode, otherWeight] = await Promise.all(digests);
    expect(one).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(same).toBe(one);
    expect(new Set([one, otherCode, otherWeight]).size).toBe(3);
  });
});

const game = defineEnvironment({
  setup: ({ seed }) => ({ moves: 0, heard: [] as string[], seed }),
  tasks: () => [{ id: "a", goal: 2 }],
  prompt: ({ task, state }) => `Move ${String(task?.goal)} times from ${state.moves}.`,
  reply: async (text, { state, message, signal }) => {
    state.heard.push(text);
    return { content: `${message.role} said ${text}${signal.aborted ? "!" : "."}`, done: state.heard.length === 2, reason: "two messages" };
  },
  hear: async (text, { state, message }) => {
    state.heard.push(`${text} beside ${message.tool_calls?.length ?? 0} calls`);
  },
  status: ({ state }) => ({ done: state.moves >= 2, reason: `${state.moves} moves` }),
  stepReward: async ({ state }) => state.moves / 2,
  digest: ({ moves }) => ({ moves }),
  observation: (result, { state }) => `${String(result)} of ${state.moves}`,
  oracle: ({ task, seed }) => (task === null ? null : [{ tool: "move", arguments: { seed } }, { say: "Done." }]),
  tools: [
    { name: "move", run: (_, { state }) => ++state.moves },
    { name: "slow", run: async (_, { state }) => ++state.moves },
    {
      name: "trip",
      run: (_, { state }) => {
        state.moves++;
        throw new Error("tripped");
      },
    },
    { name: "fall", run: (_, { state }) => Promise.reject(new Error(`fell at ${++state.moves}`)) },
  ],
});

describe("an environment that says all about its episodes", () => {
  it("answers from its state and task", async () => {
    const instance = await begin(game, { task: "a", seed: 5 });
    expect(await instance.authorEpisode.prompt(quietHooks())).toEqual({ messages: [{ role: "user", content: "Move 2 times from 0." }] });
    await call(instance, "move");
    expect(await instance.authorEpisode.stepReward(quietHooks())).toEqual({ reward: 0.5, components: {} });
    expect(await instance.authorEpisode.status(quietHooks())).toEqual({ done: false, reason: "1 moves" });
    expect(await instance.authorEpisode.oracle(quietHooks())).toEqual({
      actions: [{ tool: "move", arguments: { seed: 5 } }, { say: "Done." }],
    });
  });

  it("replies to the text of a message, and may change the state", async () => {
    const instance = await begin(game);
    expect(await instance.authorEpisode.reply(say("hello"), quietHooks())).toEqual({
      messages: [{ role: "user", content: "assistant said hello." }],
      status: { done: false, reason: "two messages" },
    });
    const parts: ChatMessage = {
      role: "assistant",
      content: [
        { type: "text", text: "good" },
        { type: "text", text: "bye" },
      ],
    };
    expect(await instance.authorEpisode.reply(parts, quietHooks())).toMatchObject({
      messages: [{ content: "assistant said goodbye." }],
      status: { done: true },
    });
  });

  it("hears what the agent writes beside its calls", async () => {
    const instance = await begin({ ...game, digest: ({ heard }: { heard: string[] }) => heard });
    const call = { id: "c", type: "function" as const, function: { name: "move", arguments: "{}" } };
    await instance.authorEpisode.hear({ ...say("I move."), tool_calls: [call] }, quietHooks());
    expect(await instance.authorEpisode.digest(quietHooks())).toEqual(digestFrom(["I move. beside 1 calls"]));
    await expect(
      (await begin({ ...game, hear: () => Promise.reject(new Error("deaf")) })).authorEpisode.hear(say("Hello."), quietHooks()),
    ).rejects.toMatchObject({ code: "episode.failed", message: expect.stringContaining("deaf") });
  });

  it("compares states by its digest only", async () => {
    const [a, b] = [await begin(game, { seed: 1 }), await begin(game, { seed: 2 })];
    await a.authorEpisode.reply(say("hello"), quietHooks());
    expect(await a.authorEpisode.digest(quietHooks())).toEqual(await b.authorEpisode.digest(quietHooks()));
    await a.authorEpisode.reply(say("hello"), quietHooks());
    await call(a, "move");
    expect(await a.authorEpisode.digest(quietHooks())).not.toEqual(await b.authorEpisode.digest(quietHooks()));
  });

  it("answers for the new episode after a reset", async () => {
    const instance = await begin(game);
    await call(instance, "move");
    await instance.reset({ ...instance.episode, task: { id: "a", goal: 9 } });
    expect(await instance.authorEpisode.prompt(quietHooks())).toEqual({ messages: [{ role: "user", content: "Move 9 times from 0." }] });
  });
});

describe("an observation", () => {
  const shown = async (instance: Instance, name: string) => (await call(instance, name)).content;
  const text = (value: string) => [{ type: "text", text: value }];

  it("replaces a tool's result from the reset that asks for it until the one that does not want it", async () => {
    const instance = await begin(game);
    const [host] = hosts as [Host];
    expect(await shown(instance, "move")).toEqual(text("1"));
    await host.reset(instance.id, { observations_only: true });
    expect([await shown(instance, "move"), await shown(instance, "slow")]).toEqual([text("1 of 1"), text("2 of 2")]);
    await host.reset(instance.id, {});
    expect(await shown(instance, "move")).toEqual(text("1 of 1"));
    expect(await shown(instance, "trip")).toEqual(text("tripped"));
    await host.reset(instance.id, { observations_only: false });
    expect(await shown(instance, "move")).toEqual(text("1"));
  });

  it("is also what a fork and a restored snapshot return", async () => {
    const instance = await begin(game);
    const [host] = hosts as [Host];
    const before = await instance.snapshot();
    await host.reset(instance.id, { observations_only: true });
    const [fork] = await host.fork(instance.id, 1);
    expect(await shown(fork as Instance, "move")).toEqual(text("1 of 1"));
    const own = await instance.snapshot();
    await instance.restore(before);
    expect(await shown(instance, "move")).toEqual(text("1"));
    await instance.restore(own);
    expect(await shown(instance, "move")).toEqual(text("1 of 1"));
  });

  it("is the whole result where the environment says nothing about it", async () => {
    const { observation: _, ...silent } = game;
    const instance = await begin(silent);
    await (hosts as [Host])[0].reset(instance.id, { observations_only: true });
    expect(await shown(instance, "move")).toEqual(text("1"));
  });
});

describe("the status", () => {
  const status = (result: CallToolResult) => (result._meta as Record<string, unknown> | undefined)?.["aenv/status"];

  it.each(["move", "slow", "trip", "fall"])("after the call of '%s' is sent with its result", async (name) => {
    const instance = await begin(game);
    expect(status(await call(instance, name))).toEqual({ done: false, reason: "1 moves" });
    expect(status(await call(instance, name))).toEqual({ done: true, reason: "2 moves" });
  });

  it("may be asynchronous", async () => {
    expect(status(await call(await begin({ ...game, status: async () => true }), "move"))).toEqual({ done: true, reason: null });
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no status today");
      },
      "no status today",
    ],
    ["rejects", () => Promise.reject(new Error("no status today")), "no status today"],
    ["returns another value", () => "over", "'status' returned 'over'"],
    ["resolves to another value", async () => 1, "'status' returned 1"],
  ])("that %s leaves the tool's result as it is, and the log has the error", async (_, own, message) => {
    const instance = await begin({ ...game, status: own });
    expect(await call(instance, "move")).toEqual({ content: [{ type: "text", text: "1" }] });
    expect(logged).toEqual([expect.stringContaining(message)]);
    await expect(instance.authorEpisode.status(quietHooks())).rejects.toMatchObject({
      code: "episode.failed",
      message: expect.stringContaining(message),
    });
  });

  it("that never comes does not hold the result of a call that its client cancelled", async () => {
    const controller = new AbortController();
    const instance = await begin({
      ...game,
      status: () => {
        queueMicrotask(() => controller.abort(new Error("the client disconnected")));
        return new Promise(() => {});
      },
    });
    expect(await call(instance, "move", controller)).toEqual({ content: [{ type: "text", text: "1" }] });
    expect(logged).toEqual([]);
  });
});

describe("a part that fails", () => {
  const boom = () => {
    throw new Error("the dice are lost");
  };
  const ask: Readonly<Record<string, (instance: Instance) => Promise<unknown>>> = {
    prompt: (instance) => instance.authorEpisode.prompt(quietHooks()),
    observe: (instance) => instance.authorEpisode.prompt(quietHooks()),
    reply: (instance) => instance.authorEpisode.reply(say("hello"), quietHooks()),
    status: (instance) => instance.authorEpisode.status(quietHooks()),
    stepReward: (instance) => instance.authorEpisode.stepReward(quietHooks()),
    digest: (instance) => instance.authorEpisode.digest(quietHooks()),
    oracle: (instance) => instance.authorEpisode.oracle(quietHooks()),
  };

  it.each(Object.keys(ask))("is named in the error of '%s', and in the log", async (part) => {
    for (const own of [boom, () => Promise.reject(new Error("the dice are lost"))]) {
      logged.length = 0;
      const instance = await begin({ [part]: own });
      await expect(ask[part]?.(instance)).rejects.toMatchObject({
        code: "episode.failed",
        message: `'${part}' of environment 'game' failed: the dice are lost`,
      });
      expect(logged).toEqual([expect.stringMatching(`'${part}' of environment 'game' .*the dice are lost`)]);
    }
  });

  it.each([
    ["prompt", 7],
    ["reply", "hello"],
    ["status", "over"],
    ["stepReward", Number.NaN],
    ["digest", () => 1],
    ["oracle", [{ tool: 1 }]],
  ])("because '%s' returned an invalid value is an error with its name", async (part, value) => {
    const instance = await begin({ [part]: async () => value });
    await expect(ask[part]?.(instance)).rejects.toMatchObject({ code: "episode.failed", message: expect.stringContaining(part) });
  });

  it("ends when its client cancels", async () => {
    const controller = new AbortController();
    const instance = await begin({ reply: () => new Promise(() => {}) });
    const answer = instance.authorEpisode.reply(say("hello"), quietHooks(controller));
    expect(instance.callsInFlight).toBe(1);
    controller.abort(new Error("the client disconnected"));
    await expect(answer).rejects.toMatchObject({ message: expect.stringContaining("the client disconnected") });
    expect(instance.callsInFlight).toBe(0);
  });
});
