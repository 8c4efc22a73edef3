import { type CallToolResult, PlatformError } from "@aenv/contract";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { compileEnvironment } from "../compile/environment.ts";
import type { AgentPart } from "../definition/agent.ts";
import type { EnvironmentDefinition } from "../definition/definition.ts";
import { quietHooks } from "../instances/call.ts";
import { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { agentEnvironment } from "./agent-environment.ts";
import { partsText } from "./task.ts";

const hosts: Host[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const one of hosts.splice(0)) await one.close("the test is over");
});

/** Turns wait until the test lets them go on. */
class Gate {
  readonly started: string[] = [];
  #open: (() => void)[] = [];
  #waiting: (() => void)[] = [];

  async pass(name: string): Promise<void> {
    this.started.push(name);
    for (const wake of this.#waiting.splice(0)) wake();
    await new Promise<void>((resolve) => this.#open.push(resolve));
  }

  async untilStarted(count: number): Promise<void> {
    while (this.started.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  open(): void {
    for (const resolve of this.#open.splice(0)) resolve();
  }
}

let gate = new Gate();

/** Does what the first word of a message says. */
const obedient: AgentPart<{ heard: string[] }> = {
  begin: () => ({ heard: [] }),
  async *turn(input, memory, { tools, signal }) {
    const text = partsText(input);
    const [word, rest = ""] = text.split(/ (.*)/s);
    memory.heard.push(text);
    if (word === "ask") yield { kind: "question", parts: [{ text: "Which one?" }] };
    else if (word === "refuse") yield { kind: "refusal", parts: [{ text: "No." }] };
    else if (word === "break") throw new Error("out of ideas");
    else if (word === "model") throw new PlatformError("model.failed", "the model is away");
    else if (word === "wait") {
      await gate.pass(rest);
      signal.throwIfAborted();
      yield { kind: "answer", parts: [{ text: `done ${rest}` }] };
    } else if (word === "make") {
      yield { kind: "message", parts: [{ text: "Working on it." }] };
      yield { kind: "artifact", artifact: { name: "poem", parts: [{ text: "Roses" }] } };
      yield { kind: "artifact", artifact: { artifactId: "artifact-1", parts: [{ text: " are red" }] }, append: true, last: true };
      yield { kind: "answer", parts: [{ text: "Made." }] };
    } else if (word === "count") {
      const { structuredContent } = await tools.call("add", { n: Number(rest) });
      yield { kind: "answer", parts: [{ text: JSON.stringify(structuredContent) }] };
    } else if (word === "tools")
      yield {
        kind: "answer",
        parts: [
          {
            text: tools
              .list()
              .map(({ name }) => name)
              .join(),
          },
        ],
      };
    else yield { kind: "answer", parts: [{ text: `${memory.heard.length}: ${memory.heard.join(" | ")}` }] };
  },
};

const environment = agentEnvironment({
  description: "Does what it is told.",
  setup: () => ({ total: 0 }),
  tools: [
    {
      name: "add",
      input: z.object({ n: z.number() }),
      run: ({ n }, { state }) => {
        state.total += n;
        return { total: state.total };
      },
    },
  ],
  rewards: [{ name: "total", score: ({ state }) => state.total }],
  agent: obedient,
});

async function start(definition: EnvironmentDefinition<never> | object = environment): Promise<{ host: Host; instance: Instance }> {
  gate = new Gate();
  const compiled = await compileEnvironment(definition as EnvironmentDefinition, { name: "agent", version: "1.0.0" });
  const host = new Host(compiled, () => {});
  hosts.push(host);
  return { host, instance: await host.create({ seed: 1 }) };
}

async function call(instance: Instance, name: string, input: object, controller = new AbortController()): Promise<CallToolResult> {
  const tool = instance.tools.get(name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  return instance.callTool(tool, input, quietHooks(controller));
}

async function chat(instance: Instance, message: string): Promise<unknown> {
  const { content } = await call(instance, "chat", { message });
  return content[0]?.text;
}

async function send(instance: Instance, input: object): Promise<Record<string, unknown>> {
  return (await call(instance, "send_message", input)).structuredContent as Record<string, unknown>;
}

describe("an agent as an environment", () => {
  it("answers chat in one conversation", async () => {
    const { instance } = await start();
    expect(await chat(instance, "hello")).toBe("1: hello");
    expect(await chat(instance, "again")).toBe("2: hello | again");
  });

  it("offers the tools of its author beside those by which others talk to it, and its agent has only the first", async () => {
    const { instance } = await start();
    expect([...instance.tools.keys()]).toEqual(["add", "chat", "send_message", "get_task", "list_tasks", "cancel_task"]);
    expect(await chat(instance, "tools")).toBe("add");
    expect(await chat(instance, "count 4")).toBe('{"total":4}');
  });

  it("refuses an environment that defines a tool with one of these names", async () => {
    const clash = { agent: obedient, tools: [{ name: "chat", run: () => "" }] };
    await expect(start(clash)).rejects.toThrow("tool 'chat' is defined twice");
    await expect(start({ agent: {} })).rejects.toThrow("'begin' and 'turn'");
  });

  it("answers a message with its task, whose ids are counters", async () => {
    const { instance } = await start();
    expect(await send(instance, { message: "hello" })).toEqual({
      task_id: "task-1",
      context_id: "context-1",
      state: "completed",
      reply: "1: hello",
      artifacts: [],
    });
    expect(await send(instance, { message: "make" })).toMatchObject({
      task_id: "task-2",
      context_id: "context-2",
      reply: "Made.",
      artifacts: [{ artifact_id: "artifact-1", name: "poem", parts: [{ text: "Roses" }, { text: " are red" }] }],
    });
    expect((await call(instance, "get_task", { task_id: "task-2" })).structuredContent).toMatchObject({
      history: [
        { role: "user", text: "make" },
        { role: "agent", text: "Working on it." },
      ],
    });
    expect((await call(instance, "list_tasks", { context_id: "context-1" })).structuredContent).toEqual({
      tasks: [{ task_id: "task-1", context_id: "context-1", state: "completed" }],
    });
  });

  it("never gives a conversation the id that a caller has chosen for another one", async () => {
    const { instance } = await start();
    expect(await send(instance, { message: "hello", context_id: "context-1" })).toMatchObject({ context_id: "context-1" });
    expect(await send(instance, { message: "hello" })).toMatchObject({ context_id: "context-2", reply: "1: hello" });
  });

  it("goes on with a task that asked for input, and takes no message for one that has ended", async () => {
    const { instance } = await start();
    expect(await send(instance, { message: "ask" })).toMatchObject({ state: "input-required", reply: "Which one?" });
    expect(await send(instance, { message: "the red one", task_id: "task-1" })).toMatchObject({
      task_id: "task-1",
      state: "completed",
      reply: "2: ask | the red one",
    });
    expect(await call(instance, "send_message", { message: "more", task_id: "task-1" })).toMatchObject({ isError: true });
    expect(await call(instance, "get_task", { task_id: "task-9" })).toMatchObject({
      isError: true,
      content: [{ text: "no task 'task-9'" }],
    });
  });

  it("ends a task as failed if the turn throws, and what the turn has changed in the memory is dropped", async () => {
    const { instance } = await start();
    expect(await send(instance, { message: "break", context_id: "c" })).toMatchObject({
      state: "failed",
      reply: null,
      error: "out of ideas",
    });
    expect(await send(instance, { message: "refuse", context_id: "c" })).toMatchObject({ state: "rejected", reply: "No." });
    expect(await send(instance, { message: "hello", context_id: "c" })).toMatchObject({ reply: "2: refuse | hello" });
  });

  it("runs the turns of one conversation one after the other, and conversations in parallel", async () => {
    const { instance } = await start();
    for (const [context_id, name] of [
      ["a", "a1"],
      ["a", "a2"],
      ["b", "b1"],
    ])
      await send(instance, { message: `wait ${name}`, context_id, wait: false });
    await gate.untilStarted(2);
    expect(gate.started).toEqual(["a1", "b1"]);
    gate.open();
    await gate.untilStarted(3);
    expect(gate.started).toEqual(["a1", "b1", "a2"]);
    gate.open();
    expect((await instance.conversations.settled("task-2")).status).toMatchObject({ state: "completed" });
  });

  it("cancels a running task and a queued one, and the conversation goes on without them", async () => {
    const { instance } = await start();
    await send(instance, { message: "wait 1", context_id: "a", wait: false });
    await send(instance, { message: "wait 2", context_id: "a", wait: false });
    await gate.untilStarted(1);
    expect((await call(instance, "cancel_task", { task_id: "task-1" })).structuredContent).toMatchObject({ state: "canceled" });
    await call(instance, "cancel_task", { task_id: "task-2" });
    gate.open();
    expect(await send(instance, { message: "hello", context_id: "a" })).toMatchObject({ reply: "1: hello" });
    expect(await call(instance, "cancel_task", { task_id: "task-3" })).toMatchObject({ isError: true });
  });

  it("plays one turn for each reply of an episode", async () => {
    const { instance } = await start();
    const reply = (content: string) => instance.authorEpisode.reply({ role: "assistant", content }, quietHooks());
    expect(await reply("hello")).toEqual({
      messages: [{ role: "user", content: "1: hello" }],
      status: { done: false, reason: null },
    });
    await expect(reply("break")).rejects.toMatchObject({ code: "episode.failed" });
    await expect(reply("model")).rejects.toMatchObject({ code: "model.failed" });
  });

  it("gives no answer and no reward if its model failed, until a new episode", async () => {
    const { host, instance } = await start();
    await expect(call(instance, "chat", { message: "model" })).rejects.toMatchObject({ code: "model.failed" });
    await expect(instance.endpoints.reward({}, quietHooks())).rejects.toMatchObject({ code: "model.failed" });
    const [copy] = await host.fork(instance.id, 1);
    await expect(copy?.endpoints.reward({}, quietHooks())).rejects.toMatchObject({ code: "model.failed" });
    await host.reset(instance.id, {});
    expect(await instance.endpoints.reward({}, quietHooks())).toBe(0);
  });
});

describe("a snapshot of an agent", () => {
  it("is continued exactly by a fork, each on its own, in the middle of a task", async () => {
    const { host, instance } = await start();
    await chat(instance, "hello");
    await send(instance, { message: "ask", context_id: "shop" });
    const [copy] = await host.fork(instance.id, 1);
    for (const one of [instance, copy as Instance]) {
      expect(await send(one, { message: "red", task_id: "task-2" })).toMatchObject({ reply: "2: ask | red", state: "completed" });
      expect(await send(one, { message: "new" })).toMatchObject({ task_id: "task-3", context_id: "context-1" });
    }
    expect(await chat(copy as Instance, "alone")).toBe("2: hello | alone");
    expect(await chat(instance, "me")).toBe("2: hello | me");
  });

  it("has the same digest for equal conversations at different times", async () => {
    const digests = await Promise.all(
      [0, 1_000_000].map(async (at) => {
        const { instance } = await start();
        const now = vi.spyOn(Date, "now").mockReturnValue(at);
        await chat(instance, "hello");
        now.mockRestore();
        return instance.authorEpisode.digest(quietHooks());
      }),
    );
    expect(digests[0]).toEqual(digests[1]);
    const { instance } = await start();
    expect(await instance.authorEpisode.digest(quietHooks())).not.toEqual(digests[0]);
  });

  it("waits for running turns, and later messages wait for it", async () => {
    const { instance } = await start();
    await send(instance, { message: "wait 1", context_id: "a", wait: false });
    await gate.untilStarted(1);
    const snapshot = instance.snapshot();
    await new Promise(setImmediate);
    const later = send(instance, { message: "later", context_id: "b" });
    gate.open();
    const { agent } = await snapshot;
    expect(agent?.data).toContain("done 1");
    expect(agent?.data).not.toContain("later");
    expect(await later).toMatchObject({ state: "completed" });
    await instance.restore(await snapshot);
    expect(instance.conversations.list().map(({ id, status }) => [id, status.state])).toEqual([["task-1", "completed"]]);
  });

  it("is refused as busy if a turn runs for longer than 30 seconds", async () => {
    const { instance } = await start();
    await send(instance, { message: "wait 1", wait: false });
    await gate.untilStarted(1);
    vi.useFakeTimers();
    const refused = expect(instance.snapshot()).rejects.toMatchObject({ code: "instance.busy", retryable: true });
    await vi.advanceTimersByTimeAsync(30_000);
    await refused;
    gate.open();
  });

  it("is refused if its conversations are damaged, or if the memory is no plain data", async () => {
    const { instance } = await start();
    await chat(instance, "hello");
    const snapshot = await instance.snapshot();
    const damaged = { ...snapshot, agent: { ...snapshot.agent, data: snapshot.agent?.data.replace("task-1", "") } };
    for (const agent of [{}, { data: "[]", times: [] }, { data: '[{"tasks":1},[]]', times: [] }])
      await expect(instance.restore({ ...damaged, agent })).rejects.toMatchObject({ code: "snapshot.invalid" });
    const { instance: odd } = await start({
      agent: {
        begin: () => ({ items: new Intl.Collator() }),
        async *turn() {
          yield { kind: "answer", parts: [{ text: "ok" }] };
        },
      },
    });
    expect(await send(odd, { message: "hello" })).toMatchObject({ state: "failed" });
  });

  it("cancels what runs when a new episode begins, whose counters begin again", async () => {
    const { host, instance } = await start();
    await send(instance, { message: "wait 1", wait: false });
    await gate.untilStarted(1);
    const { conversations } = instance;
    await host.reset(instance.id, {});
    expect(conversations.get("task-1").status.state).toBe("canceled");
    expect(await send(instance, { message: "hello" })).toMatchObject({ task_id: "task-1", reply: "1: hello" });
    gate.open();
  });
});

describe("limits of conversations", () => {
  it("keeps 1,000 tasks, drops the oldest that has ended, and refuses more than 256 at once", async () => {
    const { instance } = await start();
    const { conversations } = instance;
    const message = (text: string, contextId: string) => ({ messageId: "m", parts: [{ text }], contextId });
    for (let n = 0; n < 1_001; n++) {
      await conversations.send(message("hello", "a"));
      if (n % 200 === 199) await conversations.settled(`task-${n + 1}`);
    }
    expect(conversations.find("task-1")).toBeNull();
    expect(conversations.list()).toHaveLength(1_000);
    await conversations.settled("task-1001");
    for (let n = 0; n < 256; n++) await conversations.send(message("wait x", "b"));
    await expect(conversations.send(message("one more", "b"))).rejects.toMatchObject({ kind: "too_many" });
  });
});
