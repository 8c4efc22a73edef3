import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type ScriptedTurn, scriptedOpenAi } from "@aenv/testing";
import { afterEach, describe, expect, it } from "vitest";
import { judgeVariables, KEY, openLibrarySandbox, type Sandbox, type TestInstance, userVariables } from "../fixtures/sandbox.ts";

const LEND = { book_id: "b2", member: "cy" };
const readNotices = (...ids: readonly string[]): ScriptedTurn => ({ toolCalls: ids.map((id) => ({ name: "read_notices", id })) });

let sandbox: Sandbox | null = null;
afterEach(async () => {
  const said = sandbox?.responses ?? [];
  await sandbox?.[Symbol.asyncDispose]();
  sandbox = null;
  expect(said.join("\n")).not.toContain(KEY);
});

async function open(user: { baseUrl: string }, task: string, more: Record<string, string> = {}): Promise<TestInstance> {
  sandbox = await openLibrarySandbox();
  return sandbox.open(userVariables(user, task, more));
}

/** An endpoint that says what no model says. */
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
  it("shows the model its own words as the assistant's, the agent's as the user's, and nothing of the agent's tools", async () => {
    await using model = await scriptedOpenAi(["Tides, please", readNotices("a"), readNotices("b", "c"), "Read.", "Bye ###STOP###"]);
    const talk = await open(model, "lend", { TAU2_USER_LLM_TEMPERATURE: "0.5" });
    await talk.tool("lend", { book_id: "b2", member: "bob" });
    expect(await talk.say("Read your notices.")).toEqual({ observation: "Read.", reward: 0, done: false });
    expect(await talk.say("It costs 7.5")).toMatchObject({ observation: "Bye ###STOP###", done: true });

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

  it("begins with a task's own history, which the user knows without what the agent called", async () => {
    await using model = await scriptedOpenAi(["", readNotices("a"), "###STOP###"]);
    const talk = await open(model, "read");
    expect(await talk.say("Here is Tides.")).toMatchObject({ done: true, reward: 1 });
    expect(model.requests[0]?.messages.slice(1)).toEqual([
      { role: "assistant", text: "Tides, please." },
      { role: "user", text: "Here is Tides." },
    ]);
  });

  it("ends, and is scored, when the user stops before the agent has said a word", async () => {
    await using model = await scriptedOpenAi(({ tools }) =>
      tools.length > 0
        ? "Never mind ###STOP###"
        : JSON.stringify({ results: [{ expectedOutcome: "", metExpectation: true, reasoning: "" }] }),
    );
    const talk = await open(model, "lend");
    expect(await talk.status()).toMatchObject({ done: true, step: 0, termination_reason: "user_stop" });
    expect(await talk.say("Hello?")).toMatchObject({ done: true });
    expect(await talk.reward()).toMatchObject({ success: true, data: { total_reward: 0, done: true, steps: 0 } });
    // Nothing was to be done here, and so all is done.
    const kind = await (sandbox as Sandbox).open(userVariables(model, "kindly", judgeVariables(model)));
    expect(await kind.reward()).toMatchObject({ success: true, data: { total_reward: 1, done: true, steps: 0 } });
    const unjudged = await (sandbox as Sandbox).open(userVariables(model, "kindly"));
    expect(await unjudged.reward()).toMatchObject({ success: false, error: expect.stringContaining("no judge model") });
  });

  it("goes on when a stop stands beside a tool call, and counts the user's errors as errors", async () => {
    const wrong: ScriptedTurn = { text: "###STOP###", toolCalls: Array.from({ length: 10 }, () => ({ name: "fly" })) };
    await using model = await scriptedOpenAi(["Hello", wrong]);
    const talk = await open(model, "lend");
    expect(await talk.say("Fly!")).toMatchObject({ done: true, reward: 0 });
    expect(await talk.status()).toMatchObject({ termination_reason: "too_many_errors" });
    expect(await talk.reward()).toMatchObject({ success: true, data: { total_reward: 0 } });
  });

  it("counts the user's own steps against the limit", async () => {
    await using model = await scriptedOpenAi(({ turn }) => (turn === 0 ? "Hello" : readNotices(`n${turn}`)));
    const talk = await open(model, "lend", { TAU2_MAX_STEPS: "12" });
    expect(await talk.say("Read on and on.")).toMatchObject({ done: true, reward: 0 });
    expect(await talk.status()).toMatchObject({ step: 1, termination_reason: "max_steps" });
    // The first words, then the agent's, then five calls with their results.
    expect(model.requests).toHaveLength(6);
  });

  it("keeps conversations with one model apart", async () => {
    await using model = await scriptedOpenAi(({ messages, turn }) => (turn === 0 ? "Hello" : `I heard: ${messages.at(-1)?.text}`));
    const first = await open(model, "lend");
    const others = await Promise.all(Array.from({ length: 8 }, () => (sandbox as Sandbox).open(userVariables(model, "lend"))));
    const answers = await Promise.all([first, ...others].map((talk, n) => talk.say(`word ${n}`)));
    expect(answers.map(({ observation }) => observation)).toEqual(answers.map((_, n) => `I heard: word ${n}`));
  });
});

describe("the key", () => {
  const functions = ["task_info", "system_prompt", "available_tools", "status"].map((name) => `/functions/tau2_get_${name}`);

  it.each(["Tides, please", { status: 401, message: `no such key: ${KEY}` }])("is in no answer when the model says %j", async (first) => {
    await using model = await scriptedOpenAi(() => first);
    const talk = await open(model, "lend", judgeVariables(model));
    for (const path of functions) expect(await talk.post(path)).toMatchObject({ success: true });
    await talk.say("Hello");
    for (const path of ["/state/snapshot", "/fork", ...functions, "/task/reward"]) await talk.post(path);
    // That it is in none is looked at after every test.
    expect(sandbox?.responses.length).toBeGreaterThan(10);
    expect(model.requests[0]?.headers.authorization).toContain(KEY);
  });
});

describe("a user's model that fails", () => {
  it("with 500 until patience ends leaves the episode unscored, with the reason", async () => {
    await using model = await oddEndpoint(() => ({ status: 500, body: `out of order for ${KEY}` }));
    const talk = await open(model, "lend");
    const reason = expect.stringMatching(/broke off: the model 'scripted' at .* answered 500: out of order for \*\*\*/);
    expect(await talk.status()).toMatchObject({ done: true, total_reward: null, unscored: reason, termination_reason: null });
    expect(await talk.reward()).toMatchObject({ success: false, error: expect.stringContaining("unscored") });
    expect(await talk.done()).toMatchObject({ total_reward: null, unscored: reason });
    expect(model.attempts()).toBe(4);
  });

  it("and recovers is waited for as long as it asks", async () => {
    await using model = await scriptedOpenAi(({ index }) =>
      index < 2 ? { status: 429, message: "slowly", headers: { "retry-after": "0" } } : "Tides, please",
    );
    expect(await (await open(model, "lend")).status()).toMatchObject({ done: false, last_observation: "Tides, please" });
    expect(model.requests).toHaveLength(3);
  });

  it.each([
    ["no JSON", "<html>sorry</html>", "no JSON: <html>"],
    ["JSON of another kind", '{"choices": []}', "without a message"],
    ["silence", '{"choices": [{"message": {"role": "assistant", "content": null}}]}', "must have either content or tool_calls"],
    [
      "a call with broken arguments",
      '{"choices": [{"message": {"content": null, "tool_calls": [{"id": "1", "function": {"name": "read_notices", "arguments": "{"}}]}}]}',
      "no JSON object",
    ],
    [
      "a call whose arguments are a list",
      '{"choices": [{"message": {"content": null, "tool_calls": [{"id": "1", "function": {"name": "read_notices", "arguments": "[1]"}}]}}]}',
      "no JSON object",
    ],
  ])("with %s in the middle of a conversation makes it unscored, never 0", async (_, garbage, reason) => {
    const hello = '{"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}';
    await using model = await oddEndpoint((attempt) => ({ body: attempt === 0 ? hello : garbage }));
    const talk = await open(model, "lend");
    await talk.tool("lend", LEND);
    expect(await talk.say("It costs 7.5")).toMatchObject({ reward: null, done: true, unscored: expect.stringContaining(reason) });
    expect(await talk.reward()).toMatchObject({ success: false, error: expect.stringContaining(reason) });
    // What is garbage once is not asked for again.
    expect(model.attempts()).toBe(2);
  });

  it("because its key fits into no header says so without the key", async () => {
    sandbox = await openLibrarySandbox();
    const talk = await sandbox.open(userVariables({ baseUrl: "http://127.0.0.1:9/v1" }, "lend", { TAU2_USER_LLM_API_KEY: `${KEY}\nx` }));
    expect(await talk.status()).toMatchObject({ unscored: expect.stringContaining("cannot be reached") });
  });

  it("behind an address with a password says so without the password", async () => {
    const talk = await open({ baseUrl: `http://me:${KEY}@127.0.0.1:9/v1` }, "lend");
    expect(await talk.status()).toMatchObject({ unscored: expect.stringContaining("cannot be reached") });
  });
});

describe("a judge", () => {
  const verdict = (met: boolean) =>
    JSON.stringify({ results: [{ expectedOutcome: "The agent is kind.", metExpectation: met, reasoning: "So it is." }] });

  it.each([
    [true, 1],
    [false, 0],
  ])("that answers met: %s gives the reward %i, and is shown the conversation", async (met, reward) => {
    await using user = await scriptedOpenAi(["Hello", "Bye ###STOP###"]);
    await using judge = await scriptedOpenAi([verdict(met)]);
    const talk = await open(user, "kindly", judgeVariables(judge));
    expect(await talk.say("Good day!")).toMatchObject({ done: true, reward });
    const [request] = judge.requests;
    expect(request?.tools).toEqual([]);
    expect(request?.messages[1]?.text).toContain("user: Hello\nassistant: Good day!\nuser: Bye ###STOP###");
    expect(request?.messages[1]?.text).toContain("['The agent is kind.']");
    expect(await talk.reward()).toMatchObject({ success: true, data: { total_reward: reward } });
  });

  it("that is not configured leaves the whole conversation unscored", async () => {
    await using user = await scriptedOpenAi(["Hello", "Bye ###STOP###"]);
    const talk = await open(user, "kindly");
    expect(await talk.say("Good day!")).toMatchObject({ done: true, reward: null, unscored: expect.stringContaining("no judge model") });
  });

  it("is not asked about a conversation that ran out of steps: that is 0 by the rules", async () => {
    await using user = await scriptedOpenAi(["Hello", "Go on"]);
    await using judge = await scriptedOpenAi([verdict(true)]);
    const talk = await open(user, "kindly", { ...judgeVariables(judge), TAU2_MAX_STEPS: "3" });
    expect(await talk.say("Good day!")).toMatchObject({ done: true, reward: 0 });
    expect(judge.requests).toEqual([]);
  });

  it.each([
    ["refuses", { status: 401, message: `wrong key ${KEY}` } as ScriptedTurn, "answered 401"],
    ["is overloaded for good", { status: 503, message: "busy", headers: { "retry-after": "0" } } as ScriptedTurn, "answered 503"],
    ["babbles", "I think it was kind.", "no JSON object"],
  ])("that %s leaves the conversation unscored", async (_, answer, reason) => {
    await using user = await scriptedOpenAi(["Hello", "Bye ###STOP###"]);
    await using judge = await scriptedOpenAi(() => answer);
    const talk = await open(user, "kindly", judgeVariables(judge));
    const unscored = expect.stringMatching(new RegExp(`scoring failed: .*${reason}`));
    expect(await talk.say("Good day!")).toMatchObject({ done: true, reward: null, unscored });
    expect(await talk.reward()).toMatchObject({ success: false, error: unscored });
  });
});
