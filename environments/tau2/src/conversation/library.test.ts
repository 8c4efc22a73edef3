import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type ScriptedTurn, scriptedOpenAi } from "@aenv/testing";
import { afterEach, describe, expect, it } from "vitest";
import { judgeVariables, KEY, openLibrarySandbox, type Sandbox, type TestInstance, userVariables } from "../fixtures/sandbox.ts";

const LEND = { book_id: "b2", member: "cy" };
const readNotices = (...ids: readonly string[]): ScriptedTurn => ({ toolCalls: ids.map((id) => ({ name: "read_notices", id })) });

let sandbox: Sandbox | null = null;
afterEach(async () => {
  const responses = sandbox?.responses ?? [];
  await sandbox?.[Symbol.asyncDispose]();
  sandbox = null;
  expect(responses.join("\n")).not.toContain(KEY);
});

async function open(user: { baseUrl: string }, task: string, more: Record<string, string> = {}): Promise<TestInstance> {
  sandbox = await openLibrarySandbox();
  return sandbox.open(userVariables(user, task, more));
}

/** An endpoint with responses that no model gives. */
async function oddEndpoint(answer: (attempt: number) => { status?: number; body: string }) {
  let attempts = 0;
  const server = createServer((_, response) => {
    const { status = 200, body } = answer(attempts++);
    response.writeHead(status, { "content-type": "application/json", "retry-after-ms": "0" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    attempts: () => attempts,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

describe("a whole conversation", () => {
  it("sends the user model its own messages as the assistant's, the agent's as the user's, and no tool calls of the agent", async () => {
    await using model = await scriptedOpenAi(["Tides, please", readNotices("a"), readNotices("b", "c"), "Read.", "Bye ###STOP###"]);
    const instance = await open(model, "lend", { TAU2_USER_LLM_TEMPERATURE: "0.5" });
    await instance.tool("lend", { book_id: "b2", member: "bob" });
    expect(await instance.say("Read your notices.")).toEqual({ observation: "Read.", reward: 0, done: false });
    expect(await instance.say("It costs 7.5")).toMatchObject({ observation: "Bye ###STOP###", done: true });

    const last = model.requests.at(-1);
    expect(last?.messages.map(({ role, text }) => [role, text])).toEqual([
      ["system", expect.stringContaining("<scenario>\nPersona:\n\tIn a hurry\nInstructions:")],
      ["user", "Hi! How can I help you today?"],
      ["assistant", "Tides, please"],
      ["user", "Read your notices."],
      ["assistant", ""],
      ["tool", '["Tides"]'],
      ["assistant", ""],
      ["tool", '["Tides"]'],
      ["tool", '["Tides"]'],
      ["assistant", "Read."],
      ["user", "It costs 7.5"],
    ]);
    expect(last?.messages.flatMap(({ toolCallId }) => toolCallId ?? [])).toEqual(["a", "b", "c"]);
    expect(last?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(last?.body).toMatchObject({ model: "scripted", temperature: 0.5, tool_choice: "auto" });
    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual(model.requests.map(() => ["read_notices"]));
    expect(model.refusals).toEqual([]);
  });

  it("starts with the task's message history, of which the user does not see the agent's calls", async () => {
    await using model = await scriptedOpenAi(["", readNotices("a"), "###STOP###"]);
    const instance = await open(model, "read");
    expect(await instance.say("Here is Tides.")).toMatchObject({ done: true, reward: 1 });
    expect(model.requests[0]?.messages.slice(1)).toEqual([
      { role: "assistant", text: "Tides, please." },
      { role: "user", text: "Here is Tides." },
    ]);
  });

  it("ends and is scored when the user stops before the agent's first action", async () => {
    await using model = await scriptedOpenAi(({ tools }) =>
      tools.length > 0
        ? "Never mind ###STOP###"
        : JSON.stringify({ results: [{ expectedOutcome: "", metExpectation: true, reasoning: "" }] }),
    );
    const instance = await open(model, "lend");
    expect(await instance.status()).toMatchObject({ done: true, step: 0, termination_reason: "user_stop" });
    expect(await instance.say("Hello?")).toMatchObject({ done: true });
    expect(await instance.reward()).toMatchObject({ success: true, data: { total_reward: 0, done: true, steps: 0 } });
    // The task requires no action.
    const kind = await (sandbox as Sandbox).open(userVariables(model, "kindly", judgeVariables(model)));
    expect(await kind.reward()).toMatchObject({ success: true, data: { total_reward: 1, done: true, steps: 0 } });
    const unjudged = await (sandbox as Sandbox).open(userVariables(model, "kindly"));
    expect(await unjudged.reward()).toMatchObject({ success: false, error: expect.stringContaining("no judge model") });
  });

  it("ignores a stop token next to a tool call, and counts the user's errors", async () => {
    const wrong: ScriptedTurn = { text: "###STOP###", toolCalls: Array.from({ length: 10 }, () => ({ name: "fly" })) };
    await using model = await scriptedOpenAi(["Hello", wrong]);
    const instance = await open(model, "lend");
    expect(await instance.say("Fly!")).toMatchObject({ done: true, reward: 0 });
    expect(await instance.status()).toMatchObject({ termination_reason: "too_many_errors" });
    expect(await instance.reward()).toMatchObject({ success: true, data: { total_reward: 0 } });
  });

  it("counts the user's own steps toward the limit", async () => {
    await using model = await scriptedOpenAi(({ turn }) => (turn === 0 ? "Hello" : readNotices(`n${turn}`)));
    const instance = await open(model, "lend", { TAU2_MAX_STEPS: "12" });
    expect(await instance.say("Read on and on.")).toMatchObject({ done: true, reward: 0 });
    expect(await instance.status()).toMatchObject({ step: 1, termination_reason: "max_steps" });
    // The user's first message, the agent's message, then five calls with their results.
    expect(model.requests).toHaveLength(6);
  });

  it("keeps concurrent conversations with one model separate", async () => {
    await using model = await scriptedOpenAi(({ messages, turn }) => (turn === 0 ? "Hello" : `I heard: ${messages.at(-1)?.text}`));
    const first = await open(model, "lend");
    const others = await Promise.all(Array.from({ length: 8 }, () => (sandbox as Sandbox).open(userVariables(model, "lend"))));
    const answers = await Promise.all([first, ...others].map((instance, n) => instance.say(`word ${n}`)));
    expect(answers.map(({ observation }) => observation)).toEqual(answers.map((_, n) => `I heard: word ${n}`));
  });
});

describe("the key", () => {
  const functions = ["task_info", "system_prompt", "available_tools", "status"].map((name) => `/functions/tau2_get_${name}`);

  it.each(["Tides, please", { status: 401, message: `no such key: ${KEY}` }])(
    "is in no response when the model answers %j",
    async (first) => {
      await using model = await scriptedOpenAi(() => first);
      const instance = await open(model, "lend", judgeVariables(model));
      for (const path of functions) expect(await instance.post(path)).toMatchObject({ success: true });
      await instance.say("Hello");
      for (const path of ["/state/snapshot", "/fork", ...functions, "/task/reward"]) await instance.post(path);
      // `afterEach` checks the responses of every test.
      expect(sandbox?.responses.length).toBeGreaterThan(10);
      expect(model.requests[0]?.headers.authorization).toContain(KEY);
    },
  );
});

describe("a failing user model", () => {
  it("that answers 500 to every retry leaves the episode unscored, with the reason", async () => {
    await using model = await oddEndpoint(() => ({ status: 500, body: `out of order for ${KEY}` }));
    const instance = await open(model, "lend");
    const reason = expect.stringMatching(/the episode failed: the model 'scripted' at .* answered 500: out of order for \*\*\*/);
    expect(await instance.status()).toMatchObject({ done: true, total_reward: null, unscored: reason, termination_reason: null });
    expect(await instance.reward()).toMatchObject({ success: false, error: expect.stringContaining("unscored") });
    expect(await instance.done()).toMatchObject({ total_reward: null, unscored: reason });
    expect(model.attempts()).toBe(4);
  });

  it("that recovers is retried after the pause that it asks for", async () => {
    await using model = await scriptedOpenAi(({ index }) =>
      index < 2 ? { status: 429, message: "slowly", headers: { "retry-after": "0" } } : "Tides, please",
    );
    expect(await (await open(model, "lend")).status()).toMatchObject({ done: false, last_observation: "Tides, please" });
    expect(model.requests).toHaveLength(3);
  });

  it.each([
    ["no JSON", "<html>sorry</html>", "invalid JSON: <html>"],
    ["JSON of another kind", '{"choices": []}', "without a message"],
    ["silence", '{"choices": [{"message": {"role": "assistant", "content": null}}]}', "must have either content or tool_calls"],
    [
      "a call with broken arguments",
      '{"choices": [{"message": {"content": null, "tool_calls": [{"id": "1", "function": {"name": "read_notices", "arguments": "{"}}]}}]}',
      "not a JSON object",
    ],
    [
      "a call whose arguments are a list",
      '{"choices": [{"message": {"content": null, "tool_calls": [{"id": "1", "function": {"name": "read_notices", "arguments": "[1]"}}]}}]}',
      "not a JSON object",
    ],
  ])("that sends %s in a conversation leaves it unscored, not 0", async (_, garbage, reason) => {
    const hello = '{"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}';
    await using model = await oddEndpoint((attempt) => ({ body: attempt === 0 ? hello : garbage }));
    const instance = await open(model, "lend");
    await instance.tool("lend", LEND);
    expect(await instance.say("It costs 7.5")).toMatchObject({ reward: null, done: true, unscored: expect.stringContaining(reason) });
    expect(await instance.reward()).toMatchObject({ success: false, error: expect.stringContaining(reason) });
    // An invalid answer is not retried.
    expect(model.attempts()).toBe(2);
  });

  it("whose key is invalid in a header is reported without the key", async () => {
    sandbox = await openLibrarySandbox();
    const instance = await sandbox.open(
      userVariables({ baseUrl: "http://127.0.0.1:9/v1" }, "lend", { TAU2_USER_LLM_API_KEY: `${KEY}\nx` }),
    );
    expect(await instance.status()).toMatchObject({ unscored: expect.stringContaining("cannot be reached") });
  });

  it("at a URL with a password is reported without the password", async () => {
    const instance = await open({ baseUrl: `http://me:${KEY}@127.0.0.1:9/v1` }, "lend");
    expect(await instance.status()).toMatchObject({ unscored: expect.stringContaining("cannot be reached") });
  });
});

describe("a judge", () => {
  const verdict = (met: boolean) =>
    JSON.stringify({ results: [{ expectedOutcome: "The agent is kind.", metExpectation: met, reasoning: "So it is." }] });

  it.each([
    [true, 1],
    [false, 0],
  ])("that answers met: %s gives the reward %i, and gets the conversation", async (met, reward) => {
    await using user = await scriptedOpenAi(["Hello", "Bye ###STOP###"]);
    await using judge = await scriptedOpenAi([verdict(met)]);
    const instance = await open(user, "kindly", judgeVariables(judge));
    expect(await instance.say("Good day!")).toMatchObject({ done: true, reward });
    const [request] = judge.requests;
    expect(request?.tools).toEqual([]);
    expect(request?.messages[1]?.text).toContain("user: Hello\nassistant: Good day!\nuser: Bye ###STOP###");
    expect(request?.messages[1]?.text).toContain("['The agent is kind.']");
    expect(await instance.reward()).toMatchObject({ success: true, data: { total_reward: reward } });
  });

  it("that is not configured leaves the whole conversation unscored", async () => {
    await using user = await scriptedOpenAi(["Hello", "Bye ###STOP###"]);
    const instance = await open(user, "kindly");
    expect(await instance.say("Good day!")).toMatchObject({
      done: true,
      reward: null,
      unscored: expect.stringContaining("no judge model"),
    });
  });

  it("gets no request for a conversation that ran out of steps, whose reward is 0", async () => {
    await using user = await scriptedOpenAi(["Hello", "Go on"]);
    await using judge = await scriptedOpenAi([verdict(true)]);
    const instance = await open(user, "kindly", { ...judgeVariables(judge), TAU2_MAX_STEPS: "3" });
    expect(await instance.say("Good day!")).toMatchObject({ done: true, reward: 0 });
    expect(judge.requests).toEqual([]);
  });

  it.each([
    ["refuses", { status: 401, message: `wrong key ${KEY}` } as ScriptedTurn, "answered 401"],
    ["is overloaded for good", { status: 503, message: "busy", headers: { "retry-after": "0" } } as ScriptedTurn, "answered 503"],
    ["babbles", "I think it was kind.", "not a JSON object"],
  ])("that %s leaves the conversation unscored", async (_, answer, reason) => {
    await using user = await scriptedOpenAi(["Hello", "Bye ###STOP###"]);
    await using judge = await scriptedOpenAi(() => answer);
    const instance = await open(user, "kindly", judgeVariables(judge));
    const unscored = expect.stringMatching(new RegExp(`scoring failed: .*${reason}`));
    expect(await instance.say("Good day!")).toMatchObject({ done: true, reward: null, unscored });
    expect(await instance.reward()).toMatchObject({ success: false, error: unscored });
  });
});
