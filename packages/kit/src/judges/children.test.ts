import { PlatformError, readBoundedText } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import type { ModelCalls } from "../models/model.ts";
import { turn } from "../models/testing/turn.ts";
import { type Served, serve } from "../serve/serve.ts";
import { childJudge, childUser, judgeEnvironment } from "./children.ts";
import { judgedAnswer } from "./judged-answer.ts";
import { verdictFor } from "./testing/scripted-model.ts";

let served: Served | undefined;
afterEach(() => served?.close());

/** A user that says back what it hears, and leaves when it hears a goodbye. */
const user = defineEnvironment({
  setup: () => ({ heard: 0 }),
  reply: (text, { state }) => (text === "silence" ? {} : { content: `${++state.heard}: ${text}`, done: text === "bye" }),
}) as EnvironmentDefinition;

const shop = defineEnvironment({
  functions: [
    {
      name: "talk",
      run: (input, { children }) => childUser(children.get("user")).reply([{ role: "assistant", content: String(input.text) }]),
    },
  ],
  rewards: [
    judgedAnswer({ name: "good", judge: ({ children }) => childJudge(children.get("judge")), question: "The capital?", rubric: "Oslo." }),
  ],
}) as EnvironmentDefinition;

async function start(models: ModelCalls, judge: EnvironmentDefinition = judgeEnvironment({ model: "main" })): Promise<void> {
  const child = (name: string, definition: EnvironmentDefinition) => ({
    name,
    task: "none",
    reexport: [],
    environment: { name, version: "1.0.0", definition },
  });
  served = await serve(shop, {
    name: "shop",
    version: "1.0.0",
    port: 0,
    writeLog: () => {},
    models,
    uses: [child("judge", judge), child("user", user)],
  });
}

async function post(path: string, body: object = {}): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${served?.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return JSON.parse(await readBoundedText(response.body, { maxBytes: 1_000_000 }));
}

describe("a judge that is a child", () => {
  const say = () => post("/episode/reply", { message: { role: "assistant", content: "Oslo" } });

  it("gives the verdict of its own model", async () => {
    await start({ call: async (_, __, { messages }) => ({ message: { role: "assistant", content: verdictFor(messages, {}) }, turn }) });
    await say();
    expect(await post("/task/reward")).toMatchObject({ data: { reward: 1, verdict: "pass", reason: "because" } });
  });

  it("leaves the reward unscored with model.failed if its model fails, or if it gives no verdict", async () => {
    const failed = { success: false, errorInfo: { code: "model.failed" } };
    await start({ call: () => Promise.reject(new PlatformError("model.failed", "the endpoint is gone")) });
    await say();
    expect(await post("/task/reward")).toMatchObject(failed);
    await served?.close();
    for (const run of [() => "pass", () => ({ verdict: 1 }), () => Promise.reject(new Error("no"))]) {
      await start({ call: () => Promise.reject(new Error("not called")) }, { tools: [{ name: "judge", run }] });
      await say();
      expect(await post("/task/reward")).toMatchObject(failed);
      await served?.close();
    }
  });
});

describe("a user that is a child", () => {
  it("remembers the conversation, ends it, and is no silent user", async () => {
    await start({ call: () => Promise.reject(new Error("not called")) });
    const talk = (text: string) => post("/functions/talk", { text });
    expect(await talk("hello")).toMatchObject({ data: { message: "1: hello", done: false } });
    expect(await talk("bye")).toMatchObject({ data: { message: "2: bye", done: true } });
    expect(await talk("silence")).toMatchObject({ errorInfo: { code: "model.failed" } });
  });
});
