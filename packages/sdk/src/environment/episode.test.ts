import { instanceRoutes, noAbilities } from "@aenv/contract";
import { defineEnvironment, type Served, serve } from "@aenv/kit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpServer, sendJson, sendText } from "../../fixtures/http-server.ts";
import { Environment } from "./environment.ts";

const game = defineEnvironment({
  setup: () => ({ moves: 0, heard: [] as string[] }),
  tasks: () => [{ id: "a", instruction: "Move once." }],
  prompt: ({ task }) => [{ role: "user", content: task?.instruction ?? "Move." }],
  reply: (text, { state }) => {
    state.heard.push(text);
    return text === "boom" ? (7 as never) : { content: `I heard ${state.heard.length}.`, done: state.moves > 0, reason: "moved" };
  },
  status: ({ state }) => ({ done: state.moves > 1, reason: `${state.moves} moves` }),
  stepReward: ({ state }) => state.moves / 4,
  oracle: ({ task }) => (task === null ? null : [{ tool: "move", arguments: {} }, { say: "Done." }]),
  tools: [{ name: "move", run: (_, { state }) => ++state.moves }],
});

describe("the episode of a served environment", () => {
  let served: Served;
  let env: Environment;
  beforeAll(async () => {
    served = await serve(game, { port: 0, name: "game", version: "1.0.0", writeLog: () => {} });
    env = new Environment("game@1.0.0", { instanceUrl: served.url });
  });
  afterAll(async () => {
    await env?.release();
    await served?.close();
  });

  it("has the parts that the environment defines", async () => {
    expect(await env.episode.abilities()).toEqual({
      ...noAbilities,
      prompt: true,
      reply: true,
      status: true,
      stepRewards: true,
      oracle: true,
    });
  });

  it("can be played by what it says", async () => {
    expect(await env.episode.oracle()).toBeNull();
    await env.reset({ task: "a" });
    expect(await env.episode.prompt()).toEqual({ messages: [{ role: "user", content: "Move once." }] });
    expect(await env.episode.oracle()).toEqual([{ tool: "move", arguments: {} }, { say: "Done." }]);
    expect((await env.callTool("move")).status).toEqual({ done: false, reason: "1 moves" });
    expect(await env.episode.stepReward()).toEqual({ reward: 0.25, components: {} });
    expect(await env.episode.reply({ role: "assistant", content: "Done." })).toEqual({
      messages: [{ role: "user", content: "I heard 1." }],
      status: { done: true, reason: "moved" },
    });
    expect(await env.episode.status()).toEqual({ done: false, reason: "1 moves" });
    expect((await env.callTool("move")).status).toEqual({ done: true, reason: "2 moves" });
  });

  it("has a digest that is the same again after a snapshot is restored", async () => {
    await env.reset({ task: "a" });
    const [snapshot, digest] = [await env.snapshot(), await env.episode.digest()];
    await env.callTool("move");
    expect(await env.episode.digest()).not.toBe(digest);
    await env.restore(snapshot);
    expect(await env.episode.digest()).toBe(digest);
  });

  it("reports what the author's code did wrong", async () => {
    await expect(env.episode.reply({ role: "assistant", content: "boom" })).rejects.toMatchObject({
      name: "EnvironmentError",
      code: "episode.failed",
      message: expect.stringMatching(/could not get a reply of 'game@1\.0\.0': .*'reply' returned 7; it must return/),
    });
  });
});

describe("a server without the routes about an episode", () => {
  it("says nothing about an episode, and is asked only once", async () => {
    await using server = await httpServer((_, response) => sendText(response, "Not Found", 404));
    await using env = new Environment("old@1.0.0", { instanceUrl: server.url, skipHealthCheck: true });
    expect([await env.episode.abilities(), await env.episode.abilities()]).toEqual([noAbilities, noAbilities]);
    expect(server.count("GET", "/episode")).toBe(1);
    for (const ask of [env.episode.prompt(), env.episode.status(), env.episode.digest(), env.episode.oracle(), env.episode.stepReward()])
      await expect(ask).rejects.toMatchObject({ code: "instance.unsupported" });
  });
});

describe("requests about an episode", () => {
  it("that may change the state are never sent twice; those that read are sent again", async () => {
    const failed = new Set<string>();
    await using server = await httpServer((seen, response) => {
      if (!failed.has(seen.path)) {
        failed.add(seen.path);
        return sendText(response, "busy", 503);
      }
      sendJson(response, { success: true, data: { done: false, reason: null } });
    });
    await using env = new Environment("game@1.0.0", { instanceUrl: server.url, skipHealthCheck: true });
    expect(await env.episode.status()).toEqual({ done: false, reason: null });
    await expect(env.episode.reply({ role: "assistant", content: "Hello." })).rejects.toMatchObject({ name: "EnvironmentError" });
    expect(server.count("POST", instanceRoutes.reply.path)).toBe(1);
  });

  it("with an answer of another shape are errors", async () => {
    await using server = await httpServer((_, response) => sendJson(response, { success: true, data: { messages: "hello" } }));
    await using env = new Environment("game@1.0.0", { instanceUrl: server.url, skipHealthCheck: true });
    await expect(env.episode.prompt()).rejects.toMatchObject({
      name: "ValidationError",
      message: expect.stringMatching(/could not get the prompt of 'game@1\.0\.0': the answer has an unexpected shape/),
    });
    await expect(env.episode.stepReward()).rejects.toMatchObject({ code: "reward.failed" });
  });
});
