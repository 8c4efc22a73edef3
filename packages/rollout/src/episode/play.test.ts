import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { PlatformError, type Trajectory } from "@aenv/contract";
import { defineEnvironment, type EnvironmentDefinition, loadEnvironment, type Served, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { modelAgent } from "../agents/model.ts";
import { noopAgent, oracleAgent, scriptedAgent } from "../agents/scripted.ts";
import { ModelHttp } from "../models/http.ts";
import type { Agent } from "../player/agent.ts";
import type { Limits } from "../player/limits.ts";
import { replay } from "../replay/replay.ts";
import { type PlayOptions, playEpisode } from "./play.ts";

const never = new AbortController().signal;
let sandbox: Served;

beforeAll(async () => {
  const { name, version, definition } = await loadEnvironment(fileURLToPath(new URL("../../../../environments/echo", import.meta.url)));
  sandbox = await serve(definition, { name, version, port: 0 });
});
afterAll(() => sandbox.close());

function play(agent: Agent, own: { task?: string; limits?: Limits; seed?: number } & Partial<PlayOptions> = {}): Promise<Trajectory> {
  const { task = "greet", seed = 7, ...options } = own;
  return playEpisode(
    { id: "e", run: null, attempt: 0, task: { id: task, split: null, index: null }, group: null, seed, metadata: {} },
    {
      agent,
      recorder: null,
      model: null,
      limits: {},
      deadlineMs: 30_000,
      recordsDigests: true,
      acquire: async () => {
        const instance = await Environment.create("echo@1.0.0", { instanceUrl: sandbox.url });
        const provenance = { environment: "echo@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
        return { instance, provenance, release: () => instance.release() };
      },
      provenance: { model: null, client_version: "0" },
      costOf: () => null,
      cancel: never,
      now: () => performance.now(),
      date: () => new Date(),
      ...options,
    },
  );
}

describe("an episode", () => {
  it.each(["greet", "be-brief", "recall"])("is solved by the environment's own oracle: %s", async (task) => {
    const trajectory = await play(oracleAgent(), { task });
    expect(trajectory).toMatchObject({
      outcome: { kind: "scored", reward: 1, components: { said_it: 1, brief: 1 }, weights: { said_it: 0.8, brief: 0.2 } },
      stop_reason: "done",
      truncated: false,
    });
    expect(trajectory.messages.slice(0, 2).map(({ role }) => role)).toEqual(["system", "user"]);
    expect(trajectory.steps.at(-1)).toMatchObject({ reward: 1, state_digest: expect.stringMatching(/^sha256:/) });
  });

  it("without any action is scored by the environment too", async () => {
    expect(await play(noopAgent())).toMatchObject({ outcome: { kind: "scored", reward: 0 }, stop_reason: "done", steps: [] });
  });

  it("goes on as long as the other side answers", async () => {
    const actions = [{ say: "Hi." }, { tool: "echo", arguments: { text: "hello" } }, { say: "Done." }];
    const { messages, stop_reason } = await play(scriptedAgent(actions));
    expect(stop_reason).toBe("done");
    expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user", "assistant", "tool", "assistant"]);
  });

  it("ends when the environment says that it is over, and later calls of the same message are not run", async () => {
    const actions = Array.from({ length: 12 }, () => ({ tool: "echo", arguments: { text: "x" } }));
    const trajectory = await play(scriptedAgent(actions));
    expect(trajectory.stop_reason).toBe("done");
    expect(trajectory.steps).toHaveLength(10);
  });

  it.each([
    ["max_turns", { turns: 2 }],
    ["max_tool_calls", { toolCalls: 2 }],
  ] as const)("that reaches a limit (%s) is scored as it is then", async (reason, limits) => {
    const actions = Array.from({ length: 5 }, () => ({ tool: "echo", arguments: { text: "hello" } }));
    const trajectory = await play(scriptedAgent(actions), { limits });
    expect(trajectory).toMatchObject({ stop_reason: reason, truncated: true, outcome: { kind: "scored", reward: 0.8 } });
    expect(trajectory.steps).toHaveLength(2);
  });

  it("of a model that gets calls wrong goes on, and the model is told what was wrong", async () => {
    const http = new ModelHttp({ retries: 0, timeoutMs: 5_000 });
    await using endpoint = await scriptedOpenAi([
      { toolCalls: [{ name: "echo", arguments: "{broken" }] },
      { toolCalls: [{ name: "shout", arguments: {} }] },
      { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] },
      "Done.",
    ]);
    const agent = modelAgent({ api: "chat", baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" }, http);
    const trajectory = await play(agent);
    await http.close();
    const answers = trajectory.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    expect(answers).toEqual([
      "Error: the arguments are not valid JSON: {broken",
      "Error: there is no tool 'shout'; there are: echo, remember",
      "hello",
    ]);
    expect(trajectory).toMatchObject({
      outcome: { kind: "scored", reward: 1 },
      capture: "text",
      usage: { completion_tokens: expect.any(Number) },
    });
    expect(trajectory.turns).toHaveLength(4);
  });

  it("is unscored, never zero, when the model's endpoint is gone", async () => {
    const http = new ModelHttp({ retries: 0, timeoutMs: 5_000 });
    const endpoint = await scriptedOpenAi(["Done."]);
    await endpoint.close();
    const trajectory = await play(modelAgent({ api: "chat", baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" }, http));
    await http.close();
    expect(trajectory).toMatchObject({
      outcome: { kind: "unscored", cause: "model", stage: "play", retryable: true },
      stop_reason: "error",
    });
    expect(trajectory.outcome).not.toHaveProperty("reward");
  });

  it("whose model is cut off in the middle of its words by a limit of tokens is truncated, and scored as it is then", async () => {
    await using endpoint = await answering(() => ({ finish_reason: "length", message: { role: "assistant", content: "Let me th" } }));
    expect(await play(endpoint.agent())).toMatchObject({
      outcome: { kind: "scored", reward: 0 },
      stop_reason: "max_tokens",
      truncated: true,
      messages: [{ role: "system" }, { role: "user" }, { role: "assistant", content: "Let me th" }],
    });
  });

  it("whose model does not say how many tokens it writes has an unknown usage, and is unscored if there is a limit of tokens", async () => {
    await using endpoint = await answering(() => ({ finish_reason: "stop", message: { role: "assistant", content: "Done." } }), null);
    expect(await play(endpoint.agent(), { limits: { turns: 1 } })).toMatchObject({
      outcome: { kind: "scored" },
      usage: { prompt_tokens: null, completion_tokens: null },
    });
    expect((await play(endpoint.agent(), { limits: { tokens: 1_000 } })).outcome).toMatchObject({
      kind: "unscored",
      cause: "model",
      retryable: false,
      message: expect.stringContaining("the limit of tokens cannot be kept"),
    });
  });

  it("does not count the time that its model's endpoint is busy", async () => {
    const agent: Agent = {
      name: "delayed",
      settings: {},
      begin: () => ({
        next: async (_, { signal, onDelay }) => {
          onDelay?.(60_000);
          await new Promise((resolve) => setTimeout(resolve, 100));
          signal.throwIfAborted();
          return null;
        },
        copy: () => never as never,
      }),
    };
    expect(await play(agent, { limits: { seconds: 0.02 } })).toMatchObject({ outcome: { kind: "scored" }, stop_reason: "done" });
  });

  it("is unscored when the agent's time is up and its model has not answered at all", async () => {
    await using endpoint = await answering(() => null);
    expect(await play(endpoint.agent(), { limits: { seconds: 0.02 } })).toMatchObject({
      outcome: { kind: "unscored", cause: "model", retryable: true, message: expect.stringContaining("gave no answer") },
      stop_reason: "error",
    });
  });

  it("on a server that has no reset, as the original's, is played on a fresh instance that is not used again", async () => {
    class Unresettable extends Environment {
      override async reset(): Promise<never> {
        throw new PlatformError("instance.unsupported", "no reset");
      }
    }
    const released: boolean[] = [];
    const lease = async () => {
      const instance = new Unresettable("echo@1.0.0", { instanceUrl: sandbox.url });
      const provenance = { environment: "echo@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
      const release = async (isReusable: boolean) => {
        released.push(isReusable);
        await instance.release();
      };
      return { instance, provenance, release };
    };
    const agent = scriptedAgent([{ tool: "echo", arguments: { text: "hello" } }]);
    const task = { id: null, split: null, index: null };
    const trajectory = await play(agent, { acquire: async () => ({ ...(await lease()), task }) });
    expect(trajectory).toMatchObject({ outcome: { kind: "scored" }, steps: [{ call: { name: "echo" } }] });
    expect((await play(agent, { acquire: lease })).outcome).toMatchObject({ kind: "unscored", cause: "environment" });
    expect(released).toEqual([false, false]);
  });

  it("names its environment also if it got no instance", async () => {
    const acquire = () => Promise.reject(new Error("the server is gone"));
    const provenance = { environment: "echo@1.0.0", environment_digest: "sha256:1", model: null, client_version: "0" };
    const { outcome, provenance: known } = await play(oracleAgent(), { acquire, provenance });
    expect(outcome).toMatchObject({ kind: "unscored", stage: "start" });
    expect(known).toMatchObject({ environment: "echo@1.0.0", environment_digest: "sha256:1", engine: null });
  });

  it("is unscored when its task is unknown, and a retry would not help", async () => {
    expect(await play(noopAgent(), { task: "no-such-task" })).toMatchObject({
      outcome: { kind: "unscored", cause: "environment", stage: "reset", retryable: false },
    });
  });

  it("may have a deadline that is longer than any timer", async () => {
    expect(await play(oracleAgent(), { deadlineMs: 1_000 * 3_600_000 })).toMatchObject({ outcome: { kind: "scored", reward: 1 } });
  });

  it("is unscored when it takes longer than its deadline", async () => {
    const slow: Agent = {
      name: "slow",
      settings: {},
      begin: () => ({ next: (_, { signal }) => untilAborted(signal), copy: () => never as never }),
    };
    expect(await play(slow, { deadlineMs: 20 })).toMatchObject({ outcome: { kind: "unscored", cause: "timeout", retryable: true } });
  });

  it("is scored when only the agent's own time is up", async () => {
    const slow: Agent = {
      name: "slow",
      settings: {},
      begin: () => ({ next: (_, { signal }) => untilAborted(signal), copy: () => never as never }),
    };
    expect(await play(slow, { limits: { seconds: 0.02 } })).toMatchObject({
      outcome: { kind: "scored" },
      stop_reason: "time_limit",
      truncated: true,
    });
  });

  it("is unscored and says so when it is cancelled", async () => {
    const cancel = new AbortController();
    const agent: Agent = {
      name: "stopped",
      settings: {},
      begin: () => ({ next: async () => cancel.abort() as never, copy: () => never as never }),
    };
    cancel.signal.addEventListener("abort", () => {});
    expect(await play(agent, { cancel: cancel.signal })).toMatchObject({ outcome: { kind: "unscored", cause: "cancelled" } });
  });
});

describe("a replay", () => {
  async function replayed(trajectory: Trajectory) {
    await using instance = await Environment.create("echo@1.0.0", { instanceUrl: sandbox.url });
    return await replay(trajectory, { instance, signal: never, now: () => performance.now() });
  }

  it("stops in the middle of a message where a limit had stopped the agent", async () => {
    const call = (id: string) => ({ id, type: "function" as const, function: { name: "echo", arguments: '{"text":"x"}' } });
    const message = { role: "assistant" as const, content: "", tool_calls: [call("a"), call("b"), call("c")] };
    const next = async () => ({ message });
    const player = { next, copy: () => player };
    const agent = { name: "three", settings: {}, begin: () => player };
    const trajectory = await play(agent, { limits: { toolCalls: 2 } });
    expect(trajectory).toMatchObject({ stop_reason: "max_tool_calls", steps: [{}, {}] });
    expect(await replayed(trajectory)).toEqual({ kind: "equal", steps: 2 });
  });

  it("makes the calls of a program, whose messages are its own", async () => {
    const trajectory = await play(oracleAgent(), { task: "recall" });
    const steps = trajectory.steps.map((step) => ({ ...step, message: null }));
    const messages = trajectory.messages.slice(0, 2);
    expect(await replayed({ ...trajectory, steps, messages })).toEqual({ kind: "equal", steps: 2 });
  });

  it("of an episode is equal on a deterministic environment", async () => {
    expect(await replayed(await play(oracleAgent(), { task: "recall" }))).toEqual({ kind: "equal", steps: 2 });
  });

  it("names the first step whose observation differs, and how", async () => {
    const trajectory = await play(oracleAgent(), { task: "recall" });
    const steps = structuredClone(trajectory.steps);
    const block = steps[1]?.result.content[0] as unknown as { text: string };
    block.text = "something else";
    expect(await replayed({ ...trajectory, steps })).toMatchObject({
      kind: "diverged",
      divergence: { at: "observation", step: 1, differences: [{ path: "content[0].text", expected: "something else", actual: "sesame" }] },
    });
  });

  it("asks for the solution if the agent was the oracle: an environment may prepare what its actions use", async () => {
    const definition = defineEnvironment({
      setup: () => ({ key: "none" }),
      tools: [{ name: "look", run: (_, { state }) => state.key }],
      oracle: ({ state }) => {
        state.key = "under the mat";
        return [{ tool: "look", arguments: {} }];
      },
      rewards: [{ name: "any", score: () => 1 }],
    }) as EnvironmentDefinition;
    await using served = await serve(definition, { name: "keys", port: 0 });
    const acquire: PlayOptions["acquire"] = async () => {
      const instance = await Environment.create("keys@1.0.0", { instanceUrl: served.url });
      const provenance = { environment: "keys@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
      return { instance, provenance, task: { id: null, split: null, index: null }, release: () => instance.release() };
    };
    const trajectory = await play(oracleAgent(), { acquire });
    await using instance = await Environment.create("keys@1.0.0", { instanceUrl: served.url });
    const options = { instance, signal: never, now: () => performance.now() };
    expect(await replay(trajectory, options)).toEqual({ kind: "equal", steps: 1 });
  });

  it("names the first step after which the state differs", async () => {
    const trajectory = await play(oracleAgent(), { task: "recall" });
    const steps = trajectory.steps.map((step, at) => (at === 0 ? { ...step, state_digest: "sha256:other" } : step));
    expect(await replayed({ ...trajectory, steps })).toMatchObject({ divergence: { at: "state", step: 0 } });
  });
});

/** A chat endpoint of which each answer has this choice; null is no answer. */
async function answering(choiceOf: (attempt: number) => object | null, usage: object | null = { prompt_tokens: 9, completion_tokens: 3 }) {
  let attempts = 0;
  const server = createServer((request, response) => {
    request.resume();
    const choice = choiceOf(attempts++);
    if (choice !== null) response.setHeader("content-type", "application/json").end(JSON.stringify({ id: "c", choices: [choice], usage }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const http = new ModelHttp({ retries: 0, timeoutMs: 5_000 });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    agent: () => modelAgent({ api: "chat", baseUrl, apiKey: "k", name: "m" }, http),
    [Symbol.asyncDispose]: async () => {
      await http.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}
