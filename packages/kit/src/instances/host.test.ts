import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { compileEnvironment } from "../compile/environment.ts";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { registerReward, registerTool, takeRegistered } from "../definition/registry.ts";
import { quietHooks } from "./call.ts";
import { Host } from "./host.ts";
import type { Instance } from "./instance.ts";

const hosts: Host[] = [];

async function host(definition: EnvironmentDefinition<never> | object): Promise<Host> {
  const made = new Host(await compileEnvironment(definition as EnvironmentDefinition, { name: "counter", version: "1.0.0" }), () => {});
  hosts.push(made);
  return made;
}

afterEach(async () => {
  for (const one of hosts.splice(0)) await one.close("the test is over");
});

const tornDown: number[] = [];
const counter = defineEnvironment({
  setup: ({ task, seed, variables, args }) => {
    if (variables.BROKEN !== undefined) throw new Error("no luck today");
    return { count: task?.id === "ten" ? 10 : 0, seed, args: [...args], at: new Map([["start", new Date(0)]]) };
  },
  tasks: () => [{ id: "ten", instruction: "Start at ten.", split: "train" }, { id: "zero" }],
  tools: [
    { name: "add", input: z.object({ n: z.number() }), run: ({ n }, { state }) => (state.count += n) },
    { name: "wait", run: (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))) },
    { name: "deaf", timeoutMs: 20, run: () => new Promise(() => {}) },
    { name: "fail", run: () => Promise.reject(new Error("the store is empty")) },
  ],
  rewards: [
    { name: "reached", weight: 0.5, score: ({ state }) => state.count >= 12 },
    {
      name: "exact",
      weight: 2,
      input: z.object({ goal: z.number().default(12) }),
      score: ({ state, input }) => (state.count === input.goal ? 1 : 0),
    },
  ],
  functions: [{ name: "peek", run: (_, { state }) => state }],
  teardown: (state) => void tornDown.push(state.count),
});

async function call(instance: Instance, one: Host, name: string, args: object = {}): Promise<string> {
  const tool = one.environment.tools.get(name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const result = await instance.callTool(tool, args, quietHooks());
  return `${result.isError === true ? "error: " : ""}${String(result.content[0]?.text)}`;
}

describe("a host", () => {
  it("gives every instance its own state", async () => {
    const one = await host(counter);
    const [a, b] = [await one.create(), await one.create()];
    expect(await call(a, one, "add", { n: 5 })).toBe("5");
    expect(await call(b, one, "add", { n: 1 })).toBe("1");
    expect(a.id).not.toBe(b.id);
    expect(a.id).toMatch(/^counter-[a-z2-7]{20}$/);
  });

  it("begins an episode with its task, seed, variables and arguments", async () => {
    const one = await host(counter);
    const instance = await one.create({ task: "ten", seed: 7, arguments: ["--fast"] });
    const peek = one.environment.endpoints.get("POST /functions/peek");
    expect(await instance.endpoints.call(peek as never, {}, quietHooks())).toMatchObject({ count: 10, seed: 7, args: ["--fast"] });
  });

  it("has the tasks of each instance with tasksOf, and checks each list once", async () => {
    const lists: Record<string, { id: string; kind: string }[]> = {};
    const tasksOf = ({ variables: { KIND = "easy" } }: { variables: Readonly<Record<string, string>> }) =>
      (lists[KIND] ??= [{ id: "only", kind: KIND }]);
    const one = await host(
      defineEnvironment({
        setup: ({ task }) => task?.kind,
        tasks: () => [],
        tasksOf,
        functions: [{ name: "kind", run: (_, { state }) => state }],
      }),
    );
    const kind = one.environment.endpoints.get("POST /functions/kind");
    for (const environment_variables of [{}, { KIND: "hard" }]) {
      const instance = await one.create({ task: "only", environment_variables });
      const expected = environment_variables.KIND ?? "easy";
      expect(await instance.endpoints.call(kind as never, {}, quietHooks())).toBe(expected);
      await expect(one.reset(instance.id, { task: "none" })).rejects.toMatchObject({ code: "task.not_found" });
      await one.reset(instance.id, { task: "only" });
      expect(instance.episode.task).toMatchObject({ kind: expected });
      expect(await one.tasks.of(environment_variables)).toBe(await one.tasks.of({ ...environment_variables, OTHER: "1" }));
    }
  });

  it("refuses an unknown task, an id in use and a failing setup, and keeps nothing of them", async () => {
    const one = await host(counter);
    await one.create({ id: "a" });
    await expect(one.create({ task: "nope" })).rejects.toMatchObject({ code: "task.not_found" });
    await expect(one.create({ id: "a" })).rejects.toMatchObject({ code: "instance.exists" });
    await expect(one.create({ id: "b", environment_variables: { BROKEN: "1" } })).rejects.toMatchObject({
      code: "instance.setup_failed",
      message: "setup of 'counter' failed: no luck today",
    });
    await one.create({ id: "b" });
    expect(one.size).toBe(2);
  });

  it("resets to a new episode, and keeps the old one if the new one cannot begin", async () => {
    let isBroken = false;
    const one = await host({
      setup: () => {
        if (isBroken) throw new Error("disk full");
        return { n: 0 };
      },
      tools: [{ name: "inc", run: (_: unknown, { state }: { state: { n: number } }) => ++state.n }],
    });
    const instance = await one.create();
    expect(await call(instance, one, "inc")).toBe("1");
    await one.reset(instance.id, {});
    expect(await call(instance, one, "inc")).toBe("1");
    isBroken = true;
    await expect(one.reset(instance.id, {})).rejects.toThrow(/disk full/);
    expect(await call(instance, one, "inc")).toBe("2");
  });

  it("keeps the task and the seed in a reset that does not name them", async () => {
    const one = await host(counter);
    const instance = await one.create({ task: "ten", seed: 7 });
    await one.reset(instance.id, {});
    expect(instance.episode).toMatchObject({ task: { id: "ten" }, seed: 7 });
    await one.reset(instance.id, { task: null, seed: 8 });
    expect(instance.episode).toMatchObject({ task: null, seed: 8 });
  });

  it("returns the task's instruction or prompt as the observation of a reset, or null if it has neither", async () => {
    const one = await host({ tasks: () => [{ id: "a", instruction: "Do a.", prompt: "p" }, { id: "b", prompt: "Do b." }, { id: "c" }] });
    const { id } = await one.create();
    expect(await one.reset(id, { task: "a", seed: 2 })).toEqual({
      task: { id: "a", instruction: "Do a.", prompt: "p" },
      seed: 2,
      observation: "Do a.",
    });
    expect(await one.reset(id, { task: "b" })).toMatchObject({ task: { id: "b" }, seed: 2, observation: "Do b." });
    expect(await one.reset(id, { task: "c" })).toMatchObject({ observation: null });
    expect(await one.reset(id, { task: null })).toEqual({ task: null, seed: 2, observation: null });
  });

  it("observes the new episode with its own state, and keeps the old one if that fails", async () => {
    const closed: number[] = [];
    let count = 0;
    const one = await host({
      setup: () => ({ n: ++count }),
      observe: ({ state, task, seed }: { state: { n: number }; task: unknown; seed: number }) => {
        if (state.n === 3) throw new Error("nothing to see");
        return state.n === 4 ? undefined : { n: state.n, task, seed };
      },
      tools: [{ name: "which", run: (_: unknown, { state }: { state: { n: number } }) => state.n }],
      teardown: (state: { n: number }) => void closed.push(state.n),
    });
    const instance = await one.create({ seed: 5 });
    expect(await one.reset(instance.id, {})).toMatchObject({ observation: { n: 2, task: null, seed: 5 } });
    await expect(one.reset(instance.id, {})).rejects.toMatchObject({
      code: "instance.setup_failed",
      message: "observe of 'counter' failed: nothing to see",
    });
    expect(closed).toEqual([1, 3]);
    expect(await call(instance, one, "which")).toBe("2");
    expect(await one.reset(instance.id, {})).toMatchObject({ observation: null });
  });

  it("forks into copies that continue independently from the current state", async () => {
    const one = await host(counter);
    const parent = await one.create({ task: "ten", seed: 3 });
    await call(parent, one, "add", { n: 1 });
    const [left, right] = await one.fork(parent.id, 2);
    expect(await call(left as Instance, one, "add", { n: 1 })).toBe("12");
    expect(await call(right as Instance, one, "add", { n: 100 })).toBe("111");
    expect(await call(parent, one, "add", { n: 0 })).toBe("11");
    expect(right?.episode).toMatchObject({ task: { id: "ten" }, seed: 3 });
  });

  it("gives an instance another id, and ends what belongs to the old one", async () => {
    const one = await host(counter);
    const instance = await one.create({ id: "before" });
    await one.create({ id: "other" });
    const ended: string[] = [];
    one.onEnd((id) => ended.push(id));
    expect(() => one.rename("before", "other")).toThrow("exists already");
    expect(one.rename("before", "after")).toBe(instance);
    expect([one.find("before"), one.get("after").id, ended]).toEqual([null, "after", ["before"]]);
  });

  it("plays a task that a trainer gives, also in its forks and after a reset that names no task", async () => {
    const one = await host(
      defineEnvironment({
        setup: ({ task }) => ({ goal: task?.goal }),
        inlineTask: ({ goal }) => {
          if (typeof goal !== "number") throw new Error("goal must be a number");
          return { id: "given", goal };
        },
        tools: [{ name: "goal", run: (_, { state }) => String(state.goal) }],
      }),
    );
    const instance = await one.create();
    expect(await one.reset(instance.id, { task: { goal: 5 } })).toMatchObject({ task: { id: "given", goal: 5 } });
    await one.reset(instance.id, { seed: 2 });
    const [copy] = await one.fork(instance.id, 1);
    expect(copy?.episode.task).toEqual({ id: "given", goal: 5 });
    expect(await one.forkSpec(instance.id)).toMatchObject({ task: { goal: 5 } });
    await expect(one.reset(instance.id, { task: { goal: "five" } })).rejects.toMatchObject({
      code: "task.invalid",
      message: "the environment does not accept the task: goal must be a number",
    });
    expect(await call(instance, one, "goal")).toBe("5");
  });

  it("plays only the tasks of its list if it has no inlineTask", async () => {
    const one = await host(counter);
    const instance = await one.create();
    await expect(one.reset(instance.id, { task: { count: 3 } })).rejects.toMatchObject({
      code: "task.invalid",
      message: expect.stringContaining("give the id of one"),
    });
  });

  // Before: `instance.setup_failed`, 500, also for a state that the client has made up.
  it("blames the snapshot if the environment cannot restore what a client has sent, and the environment in a fork", async () => {
    const one = await host({
      setup: () => ({ stock: 1 }),
      snapshot: (state: { stock: number }) => state.stock,
      restore: () => {
        throw new TypeError("no stock");
      },
    });
    const instance = await one.create();
    const snapshot = { environment: "counter@1.0.0", format: "custom", data: "much" };
    const refused = {
      code: "snapshot.invalid",
      message: expect.stringContaining("this snapshot cannot be restored: restore of 'counter' failed: no stock"),
    };
    await expect(instance.restore(snapshot)).rejects.toMatchObject(refused);
    await expect(one.create({ snapshot })).rejects.toMatchObject(refused);
    await expect(one.fork(instance.id, 1)).rejects.toMatchObject({ code: "instance.setup_failed" });
  });

  it("restores a snapshot, also in another instance", async () => {
    const one = await host(counter);
    const instance = await one.create();
    await call(instance, one, "add", { n: 4 });
    const snapshot = await instance.snapshot();
    await call(instance, one, "add", { n: 1 });
    await instance.restore(snapshot);
    expect(await call(instance, one, "add", { n: 0 })).toBe("4");
    expect(await call(await one.create({ snapshot }), one, "add", { n: 1 })).toBe("5");
  });

  it("tears an episode's state down when it ends", async () => {
    tornDown.length = 0;
    const one = await host(counter);
    const instance = await one.create();
    await call(instance, one, "add", { n: 3 });
    expect(await one.destroy(instance.id)).toBe(true);
    expect(await one.destroy(instance.id)).toBe(false);
    expect(tornDown).toEqual([3]);
  });

  it("aborts running calls when their instance is deleted", async () => {
    const one = await host(counter);
    const instance = await one.create();
    const waiting = call(instance, one, "wait");
    await one.destroy(instance.id);
    expect(await waiting).toBe("error: the instance was deleted");
  });
});

describe("a call", () => {
  it("that throws is an error result with the message and no stack", async () => {
    const one = await host(counter);
    expect(await call(await one.create(), one, "fail")).toBe("error: the store is empty");
  });

  it("with wrong arguments names the field", async () => {
    const one = await host(counter);
    expect(await call(await one.create(), one, "add", { n: "two" })).toMatch(/^error: .*Invalid arguments for tool add: n: /);
  });

  it("ends at its timeout, even if the tool ignores the signal", async () => {
    const one = await host(counter);
    expect(await call(await one.create(), one, "deaf")).toBe("error: tool 'deaf' timed out after 20 ms");
  });
});

describe("rewards", () => {
  it("return a weighted total, their components and weights, each with its own arguments", async () => {
    const one = await host(counter);
    const instance = await one.create({ task: "ten" });
    await call(instance, one, "add", { n: 3 });
    const weights = { reached: 0.5, exact: 2 };
    expect(await instance.endpoints.reward({ goal: 13 }, quietHooks())).toEqual({
      reward: 2.5,
      components: { reached: 1, exact: 1 },
      weights,
    });
    expect(await instance.endpoints.reward({}, quietHooks())).toEqual({ reward: 0.5, components: { reached: 1, exact: 0 }, weights });
  });

  it("return what the function returned if there is a single one of weight 1", async () => {
    const one = await host({ rewards: [{ name: "r", score: () => ({ status: "success", score: 1 }) }] });
    expect(await (await one.create()).endpoints.reward({}, quietHooks())).toEqual({ status: "success", score: 1 });
  });

  it("that throw, or return no number, are errors and never a zero", async () => {
    const thrower = await (await host({ rewards: [{ name: "r", score: () => Promise.reject(new Error("judge is away")) }] })).create();
    await expect(thrower.endpoints.reward({}, quietHooks())).rejects.toMatchObject({ code: "reward.failed", message: "judge is away" });
    const silent = await (await host({ rewards: [{ name: "r", score: () => undefined }] })).create();
    await expect(silent.endpoints.reward({}, quietHooks())).rejects.toMatchObject({ code: "reward.failed" });
    const nan = await (
      await host({
        rewards: [
          { name: "a", score: () => Number.NaN },
          { name: "b", score: () => 1 },
        ],
      })
    ).create();
    await expect(nan.endpoints.reward({}, quietHooks())).rejects.toThrow(/reward 'a' returned NaN/);
    const none = await (await host({})).create();
    await expect(none.endpoints.reward({}, quietHooks())).rejects.toMatchObject({ code: "reward.missing" });
  });
});

describe("the one-file style", () => {
  it("serves one instance, and reports why it cannot be forked or reset", async () => {
    let notes = 0;
    registerTool({ name: "note", description: "Notes.", input: z.object({ text: z.string() }) }, ({ text }) => `${++notes}: ${text}`);
    registerReward((input) => ({ score: notes, input }));
    const one = await host(takeRegistered() as EnvironmentDefinition);
    const instance = await one.create();
    expect(await call(instance, one, "note", { text: "milk" })).toBe("1: milk");
    expect(await instance.endpoints.reward({ a: 1 }, quietHooks())).toEqual({ score: 1, input: { a: 1 } });
    for (const attempt of [
      () => one.create(),
      () => one.fork(instance.id, 1),
      () => one.reset(instance.id, {}),
      () => instance.restore({}),
    ]) {
      await expect(attempt()).rejects.toThrow(/keeps its state in its modules.*use defineEnvironment/);
    }
  });

  it("leaves nothing registered for the next environment of the process", () => {
    registerTool({ name: "a", input: z.object({}) }, () => null);
    expect(takeRegistered()?.tools).toHaveLength(1);
    expect(takeRegistered()).toBeNull();
  });
});
