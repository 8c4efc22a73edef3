import { type ModelCall, PlatformError, type RecordedExchange } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment } from "../definition/definition.ts";
import { type Served, serve } from "../serve/serve.ts";
import { Recording } from "./recording.ts";
import { turn } from "./testing/turn.ts";

/** A user who is a model, and a judge who is one. */
const talk = defineEnvironment({
  setup: () => ({ messages: [] as { role: "user" | "assistant"; content: string }[] }),
  tools: [
    {
      name: "say",
      input: z.object({ text: z.string() }),
      run: async ({ text }, { state, model }) => {
        state.messages.push({ role: "user", content: text });
        const { message } = await model("user").complete({ messages: state.messages });
        state.messages.push({ role: "assistant", content: String(message.content) });
        return message.content;
      },
    },
  ],
  rewards: [
    {
      name: "judged",
      score: async ({ state, model }) => Number((await model("judge").complete({ messages: state.messages })).message.content),
    },
  ],
});

let served: Served | undefined;
afterEach(() => served?.close());

/** Counts its calls in its answers, so that no two are equal. */
async function start() {
  const calls: ModelCall[] = [];
  const state = { isAway: false };
  const answer = (name: string, call: ModelCall) => {
    if (state.isAway) throw new PlatformError("model.failed", "the model is away");
    calls.push(call);
    return { message: { role: "assistant" as const, content: name === "judge" ? "0.5" : `answer ${calls.length}` }, turn };
  };
  const models = { call: async (_: string, name: string, call: ModelCall) => answer(name, call) };
  served = await serve(talk, { name: "talk", version: "1.0.0", port: 0, writeLog: () => {}, models });
  const { url } = served;
  const send = async (method: string, path: string, body?: object) => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const response = await fetch(url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const text = await response.text();
    return response.headers.get("content-type") === "application/jsonl" ? text : JSON.parse(text);
  };
  const say = async (text: string) => {
    const called = await send("POST", "/mcp", {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "say", arguments: { text } },
    });
    return called.result?.content[0].text ?? called.error.message;
  };
  const score = () => send("POST", "/task/reward", {});
  const recording = async (): Promise<RecordedExchange[]> =>
    (await send("GET", "/episode/recording"))
      .split("\n")
      .filter((line: string) => line !== "")
      .map((line: string) => JSON.parse(line));
  const reset = (request: object) => send("POST", "/task/reset", request);
  return { calls, state, send, say, score, recording, reset };
}

describe("the recording of an episode", () => {
  it("has each call of a model, its answer, and the tool call that caused it; a conversation is stored once", async () => {
    const { say, score, recording, send } = await start();
    expect(await send("GET", "/episode")).toMatchObject({ data: { recording: true } });
    await say("one");
    await say("two");
    await score();
    const user = (content: string) => ({ role: "user", content });
    expect(await recording()).toMatchObject([
      { path: "", n: 0, model: "user", base: null, messages: [user("one")], called_by: 0, answer: { turn: { prompt_tokens: 7 } } },
      { n: 1, base: { n: 0, messages: 2 }, messages: [user("two")], called_by: 1, answer: { message: { content: "answer 2" } } },
      { n: 2, model: "judge", base: { n: 1, messages: 4 }, messages: [], called_by: null },
    ]);
  });

  it("replays an episode without the models, and says which call is not in it", async () => {
    const { say, score, recording, reset, state, calls } = await start();
    const said = [await say("one"), await say("two"), await score()];
    const entries = await recording();
    state.isAway = true;
    await reset({ recording: { mode: "recorded", entries } });
    expect([await say("one"), await say("two"), await score()]).toEqual(said);
    expect((await recording()).map(({ digest }) => digest)).toEqual(entries.map(({ digest }) => digest));
    await reset({ recording: { mode: "recorded", entries } });
    expect(await say("three")).toContain("the recording has no answer to this call of model 'user'");
    expect(calls).toHaveLength(3);
  });

  it("can be filled up by the models, and is empty after the next reset", async () => {
    const { say, recording, reset, calls } = await start();
    await say("one");
    await reset({ recording: { mode: "fill", entries: await recording() } });
    expect([await say("one"), await say("other")]).toEqual(["answer 1", "answer 2"]);
    expect(calls).toHaveLength(2);
    await reset({});
    expect(await recording()).toEqual([]);
    expect(await say("one")).toBe("answer 3");
  });

  it("goes on in a fork, which has what came before it and the answers that are left", async () => {
    const { say, recording, reset } = await start();
    await say("one");
    await say("two");
    const entries = await recording();
    await reset({ recording: { mode: "recorded", entries } });
    await say("one");
    const [fork] = (await served?.host.fork("default", 1)) ?? [];
    expect(fork?.recording.read()).toHaveLength(1);
    const snapshot = await fork?.snapshot();
    expect(snapshot?.recording).toMatchObject({
      mode: "recorded",
      steps: 1,
      exchanges: [{ n: 0 }],
      left: [{ digest: entries[1]?.digest }],
    });
    expect(await say("two")).toBe("answer 2");
  });

  it("is refused in a snapshot that is damaged", () => {
    expect(() => Recording.from({ recording: { mode: "live" } })).toThrow("its recording is not one");
  });

  it("is not given out if it is not complete", async () => {
    const recording = new Recording({ mode: "live" }, 100);
    await recording.answer("main", { messages: [{ role: "user", content: "x".repeat(200) }], tools: [] }, null, async () => ({
      message: { role: "assistant", content: "y" },
      turn,
    }));
    expect(() => recording.read()).toThrow("larger than 100 characters");
  });
});
