import { instanceRoutes } from "@aenv/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineEnvironment } from "../definition/definition.ts";
import { type Served, serve } from "./serve.ts";

const game = defineEnvironment({
  setup: () => ({ heard: [] as string[] }),
  prompt: () => [{ role: "system", content: "Say hello." }],
  reply: (text, { state }) => {
    state.heard.push(text);
    return { done: true };
  },
  status: ({ state }) => state.heard.length > 0,
  stepReward: () => {
    throw new Error("the dice are lost");
  },
  oracle: () => [{ say: "hello" }],
  functions: [{ name: "heard", run: (_, { state }) => state.heard }],
});

let served: Served;
beforeAll(async () => {
  served = await serve(game, { name: "game", version: "1.0.0", port: 0, writeLog: () => {} });
});
afterAll(() => served?.close());

async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(served.url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  return { status: response.status, body: await response.json() };
}

describe("the routes about an episode", () => {
  it("answer in the envelope of the trainer API, at the root and below an instance", async () => {
    for (const prefix of ["", "/env-instance/default"]) {
      expect(await ask("GET", `${prefix}/episode/prompt`)).toEqual({
        status: 200,
        body: { success: true, data: { messages: [{ role: "system", content: "Say hello." }] } },
      });
    }
    expect(await ask("GET", "/episode/oracle")).toMatchObject({ status: 200, body: { data: { actions: [{ say: "hello" }] } } });
    expect(await ask("GET", "/state/digest")).toMatchObject({ status: 200, body: { data: { digest: expect.stringMatching(/^sha256:/) } } });
    expect(await ask("GET", "/episode")).toMatchObject({
      body: {
        data: { prompt: true, reply: true, status: true, stepRewards: true, digest: false, oracle: true, observation: false, hear: false },
      },
    });
  });

  it("pass the agent's message to reply, and the status is that of the changed state", async () => {
    expect(await ask("GET", "/episode/status")).toMatchObject({ body: { data: { done: false, reason: null } } });
    const message = { role: "assistant", content: "hello" };
    expect(await ask("POST", "/episode/reply", { message })).toMatchObject({
      status: 200,
      body: { data: { messages: [], status: { done: true, reason: null } } },
    });
    expect(await ask("GET", "/episode/status")).toMatchObject({ body: { data: { done: true } } });
    expect(await ask("POST", "/functions/heard", {})).toMatchObject({ body: { data: ["hello"] } });
  });

  it.each([{}, { message: "hello" }, { message: { content: "hello" } }, { message: { role: "bot", content: "hello" } }])(
    "refuse the reply request %j, and the environment does not see it",
    async (body) => {
      const before = await ask("POST", "/functions/heard", {});
      expect(await ask("POST", "/episode/reply", body)).toMatchObject({ status: 400, body: { success: false } });
      expect(await ask("POST", "/functions/heard", {})).toEqual(before);
    },
  );

  it("report an error of the author's code with its code and message, and no stack", async () => {
    const { status, body } = await ask("POST", "/episode/reward", {});
    expect(status).toBe(500);
    expect(JSON.stringify(body)).toContain("episode.failed");
    expect(JSON.stringify(body)).toContain("'stepReward' of environment 'game' failed: the dice are lost");
    expect(JSON.stringify(body)).not.toContain("episode-api.test.ts");
  });

  it("refuse other methods", async () => {
    const { digest, prompt, reply, status, stepReward, oracle } = instanceRoutes;
    for (const { method, path } of [digest, prompt, reply, status, stepReward, oracle]) {
      const other = method === "GET" ? "POST" : "GET";
      expect([path, (await fetch(served.url + path, { method: other })).status]).toEqual([path, 405]);
    }
  });
});
