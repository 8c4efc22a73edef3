import { fileURLToPath } from "node:url";
import { loadEnvironment, type Served, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

let sandbox: Served;
let env: Environment;

beforeAll(async () => {
  // As `aenv run` does it, so that config.json is tested too.
  const { name, version, definition } = await loadEnvironment(fileURLToPath(new URL("..", import.meta.url)));
  sandbox = await serve(definition, { name, version, port: 0 });
});
afterAll(() => sandbox.close());

beforeEach(async () => {
  env = await Environment.create("echo@1.0.0", { instanceUrl: sandbox.url });
  await env.reset({ task: "greet" });
});
afterEach(() => env.release());

describe("tools", () => {
  it("are echo and remember, described for a model", async () => {
    const tools = await env.listTools();
    expect(tools.map((tool) => tool.name)).toEqual(["echo@1.0.0/echo", "echo@1.0.0/remember"]);
    for (const tool of tools) expect(tool.description).toMatch(/\.$/);
    expect(tools[0]?.inputSchema).toMatchObject({ required: ["text"] });
  });

  it("echo a text, once or several times", async () => {
    expect((await env.callTool("echo", { text: "hello" })).text).toBe("hello");
    expect((await env.callTool("echo@1.0.0/echo", { text: "ho", times: 3 })).text).toBe("ho ho ho");
  });

  it("name the invalid argument", async () => {
    const result = await env.callTool("echo", { text: "hello", times: 11 });
    expect(result.isError).toBe(true);
    expect(result.text).toContain("times");
  });

  it("keep a note until the episode ends", async () => {
    expect((await env.callTool("remember", { name: "color", text: "blue" })).json()).toEqual({ name: "color", text: "blue" });
    expect((await env.callTool("remember", { name: "color" })).json()).toEqual({ name: "color", text: "blue" });
    await env.reset();
    const result = await env.callTool("remember", { name: "color" });
    expect(result).toMatchObject({ isError: true, text: "nothing is remembered as 'color'; known: nothing" });
  });
});

describe("rewards", () => {
  it.each([
    ["nothing is said", [], {}, { reward: 0, components: { said_it: 0, brief: 0 } }],
    ["the word is said at once", ["hello"], {}, { reward: 1, components: { said_it: 1, brief: 1 } }],
    ["the word is said in the end", ["well", "hello"], {}, { reward: 0.8, components: { said_it: 1, brief: 0 } }],
    ["the trainer allows two calls", ["well", "hello"], { calls: 2 }, { reward: 1, components: { said_it: 1, brief: 1 } }],
    ["something else is said", ["goodbye"], {}, { reward: 0.2, components: { said_it: 0, brief: 1 } }],
  ])("are correct when %s", async (_, texts, args, expected) => {
    for (const text of texts) await env.callTool("echo", { text });
    expect(await env.score(args)).toEqual({ ...expected, weights: { said_it: 0.8, brief: 0.2 } });
  });
});

describe("tasks", () => {
  it("are listed by split, for the trainer", async () => {
    expect((await env.tasks()).map((task) => task.id)).toEqual(["greet", "be-brief", "recall"]);
    expect(await env.tasks({ split: "test" })).toEqual([expect.objectContaining({ id: "recall", goal: "sesame" })]);
  });

  it("begin with an observation, and so does an episode without a task", async () => {
    expect(await env.reset({ task: "greet", seed: 4 })).toMatchObject({
      task: { id: "greet" },
      seed: 4,
      observation: "Echo the word 'hello'.",
    });
    expect(await env.reset({ task: null })).toMatchObject({ task: null, observation: "Echo the word 'hello'." });
  });

  it("can each be solved", async () => {
    for (const task of await env.tasks()) {
      await env.reset({ task: task.id });
      const known = await env.callTool("remember", { name: "password" });
      const word = known.isError ? /'(.+)'/.exec(task.instruction ?? "")?.[1] : known.json<{ text: string }>().text;
      await env.callTool("echo", { text: word ?? "" });
      expect(await env.score()).toMatchObject({ reward: 1 });
    }
  });
});

describe("state", () => {
  it("is restored from a snapshot, and continues in independent forks", async () => {
    await env.callTool("remember", { name: "color", text: "blue" });
    const snapshot = await env.snapshot();
    const [left, right] = await env.fork(2);
    try {
      await left?.callTool("remember", { name: "color", text: "red" });
      expect((await right?.callTool("remember", { name: "color" }))?.json()).toEqual({ name: "color", text: "blue" });
      expect(await left?.callFunction("transcript")).toEqual({ echoes: [], notes: { color: "red" } });
      await env.callTool("echo", { text: "hello" });
      await env.restore(snapshot);
      expect(await env.callFunction("transcript")).toEqual({ echoes: [], notes: { color: "blue" } });
    } finally {
      await left?.release();
      await right?.release();
    }
  });
});

describe("health", () => {
  it("reports the number of echoes", async () => {
    await env.callTool("echo", { text: "hello" });
    expect(await env.checkHealth()).toEqual({ success: true, data: { status: "healthy", echoes: 1 } });
  });
});
