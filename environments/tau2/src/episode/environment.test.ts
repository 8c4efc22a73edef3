import { fileURLToPath } from "node:url";
import { type ModelCalls, PlatformError, type Served, serve } from "@aenv/kit";
import { callModel, ModelHttp } from "@aenv/rollout";
import { scriptedOpenAi, temporaryTree } from "@aenv/testing";
import { afterEach, describe, expect, it } from "vitest";
import { library, openLibrary } from "../fixtures/library.ts";
import { tau2Environment } from "./environment.ts";
import { Episode } from "./episode.ts";
import { readSettings, shownVariables } from "./settings.ts";

const TAU2_DATA_DIR = fileURLToPath(new URL("../fixtures/data", import.meta.url));

let served: Served | null = null;
afterEach(async () => {
  await served?.close();
  served = null;
});

type Json = Record<string, unknown>;

/** A sandbox with the library domain, and clients of its instances. */
async function open(variables: Record<string, string> = {}, models?: ModelCalls) {
  const definition = tau2Environment({
    domains: new Map([["library", library]]),
    open: openLibrary,
    variables: { TAU2_DATA_DIR, TAU2_DOMAIN: "library" },
  });
  const sandbox = await serve(definition, {
    name: "tau2",
    version: "1.0.0",
    port: 0,
    writeLog: () => {},
    ...(models !== undefined && { models }),
  });
  served = sandbox;
  const post = async (path: string, body: Json = {}): Promise<Json> => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const response = await fetch(sandbox.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return (await response.json()) as Json;
  };
  const at = (id: string) => {
    const root = `/env-instance/${id}`;
    return {
      id,
      post: (path: string, body?: Json) => post(root + path, body),
      get: async (path: string) => ((await (await fetch(sandbox.url + root + path)).json()) as Json).data,
      say: async (content: string) => (await post(`${root}/episode/reply`, { message: { role: "assistant", content } })).data,
      fn: async (name: string, body?: Json) => (await post(`${root}/functions/${name}`, body)).data,
      tool: async (name: string, args: Json): Promise<Json> => {
        const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
        const { result } = (await post(`${root}/mcp`, request)) as { result: { content: { text: string }[] } };
        return JSON.parse(result.content[0]?.text ?? "") as Json;
      },
    };
  };
  const created = await post("/env-instance", { environment_variables: variables });
  return { first: at(String((created.data as Json).id)), at, post };
}

const LEND = { book_id: "b2", member: "cy" };

describe("a solo episode through a sandbox", () => {
  it("describes its task, prompt and tools", async () => {
    const { first } = await open({ TAU2_TASK_ID: "lend" });
    expect(await first.fn("tau2_get_task_info")).toMatchObject({
      task_id: "lend",
      domain: "library",
      ticket: null,
      tools: ["lend", "count_books", "read_notices", "done"],
      max_steps: 50,
      solo_mode: true,
    });
    expect(await first.fn("tau2_get_system_prompt")).toContain("single call of the tool `done`");
    expect(await first.fn("tau2_get_available_tools")).toHaveLength(4);
  });

  it("answers tool calls with observations, and wrong arguments with the reference's errors", async () => {
    const { first } = await open({ TAU2_TASK_ID: "lend" });
    expect(await first.tool("count_books", {})).toEqual({ observation: '"3"', reward: 0, done: false, step: 1 });
    const { observation } = await first.tool("lend", { book_id: "b2" });
    expect(observation).toBe("Error: LibraryTools.lend() missing 1 required positional argument: 'member'");
  });

  it("keeps ints and floats apart, from the agent's call to the state's digest", async () => {
    const { first, post, at } = await open({ TAU2_TASK_ID: "lend" });
    const created = await post("/env-instance", { environment_variables: { TAU2_TASK_ID: "lend" } });
    const other = at(String((created.data as Json).id));
    const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };
    expect(await first.tool("lend", { book_id: "b2", member: 5 })).toMatchObject({
      observation: expect.stringContaining('"borrower": 5}'),
    });
    const { observation } = await other.tool("lend", { book_id: "b2", member: rawJSON("5.0") });
    expect(observation).toContain('"borrower": 5.0}');
    expect(await first.fn("tau2_get_state_hash")).not.toEqual(await other.fn("tau2_get_state_hash"));
    const replayed = await Episode.open(openLibrary(), readSettings({ TAU2_DATA_DIR, TAU2_TASK_ID: "lend" }));
    await replayed.act("lend(book_id='b2', member=5.0)");
    const [agent, user] = replayed.stateHashes;
    expect(await other.fn("tau2_get_state_hash")).toEqual({ agent, user });
  });

  it("keeps a call's arguments as they are through a snapshot, even a lone surrogate", async () => {
    const { first, post, at } = await open({ TAU2_TASK_ID: "lend" });
    const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };
    await first.tool("lend", { book_id: "b2", member: ["\ud800", rawJSON("5.0")] });
    const { data: snapshot } = await first.post("/state/snapshot");
    expect(snapshot).toMatchObject({ data: { actions: [{ name: "lend", arguments: expect.stringContaining('["\\ud800", 5.0]') }] } });
    const { data } = await post(`/env-instance/${first.id}/fork`, { count: 1 });
    const fork = at(String((data as Json[])[0]?.id));
    expect(await fork.fn("tau2_get_state_hash")).toEqual(await first.fn("tau2_get_state_hash"));
  });

  it("starts with its ticket, or with nothing if the task has none", async () => {
    const { first } = await open({ TAU2_TASK_ID: "lend" });
    expect((await first.post("/task/reset", { task: "lend" })).data).toMatchObject({ observation: null });
    expect((await first.post("/task/reset", { task: "kindly" })).data).toMatchObject({ observation: "Nobody wants a book today." });
  });

  it("is scored when it is done", async () => {
    const { first } = await open({ TAU2_TASK_ID: "lend" });
    await first.tool("lend", LEND);
    expect(await first.post("/task/reward")).toMatchObject({ data: { total_reward: 0, done: false } });
    // The task requires to communicate the price, which a solo agent cannot do.
    expect(await first.tool("done", {})).toMatchObject({ done: true, reward: 0, step: 2 });
    expect(await first.fn("tau2_get_status")).toMatchObject({ step: 2, done: true, termination_reason: "agent_stop" });
  });

  it("lists its tasks with their splits", async () => {
    const { first } = await open();
    const { data } = (await fetch(`${served?.url}/env-instance/${first.id}/task/list`).then((response) => response.json())) as {
      data: { items: Json[] };
    };
    expect(data.items.map(({ id, split }) => [id, split])).toEqual([
      ["lend", "train"],
      ["kindly", "test"],
      ["read", "train"],
    ]);
  });
});

describe("a conversation through a sandbox", () => {
  const talkTo = (baseUrl: string, task: string, more: Record<string, string> = {}) =>
    open({
      TAU2_TASK_ID: task,
      TAU2_SOLO_MODE: "false",
      TAU2_USER_LLM: "openai/scripted",
      TAU2_USER_LLM_API_BASE: baseUrl,
      TAU2_USER_LLM_API_KEY: "sk-quiet",
      ...more,
    });

  it("runs from the user's first message to the reward, and shows no key", async () => {
    await using model = await scriptedOpenAi(["Tides, please", "Thanks ###STOP###"]);
    const { first } = await talkTo(model.baseUrl, "lend");
    const status = await first.fn("tau2_get_status");
    expect(status).toMatchObject({ step: 0, last_observation: "Tides, please", environment: { TAU2_USER_LLM: "openai/scripted" } });
    expect(JSON.stringify(status)).not.toContain("sk-quiet");
    await first.tool("lend", LEND);
    expect(await first.fn("tau2_send_message", { message: "It costs 7.5" })).toEqual({
      observation: "Thanks ###STOP###",
      reward: 1,
      done: true,
    });
    expect(await first.post("/task/reward")).toMatchObject({ data: { reward: 1, rewards: [0, 1], total_reward: 1, done: true, steps: 2 } });
  });

  it("lists its tasks without the tickets, which say what only the user knows", async () => {
    await using model = await scriptedOpenAi(["Tides, please"]);
    const { first } = await talkTo(model.baseUrl, "lend");
    const instructions = async (instance: typeof first) =>
      ((await instance.get("/task/list")) as { items: Json[] }).items.flatMap(({ instruction }) => instruction ?? []);
    expect(await instructions(first)).toEqual([]);
    await served?.close();
    expect(await instructions((await open()).first)).toContain("Nobody wants a book today.");
  });

  it("continues in a fork from the same state, without a new request to the user model", async () => {
    await using model = await scriptedOpenAi(["Tides, please", "Thanks ###STOP###"]);
    const { first, at } = await talkTo(model.baseUrl, "lend");
    await first.tool("lend", LEND);
    const { data } = (await first.post("/fork", { count: 1 })) as { data: { id: string }[] };
    expect(model.requests).toHaveLength(1);
    const other = at(data[0]?.id ?? "");
    expect(await other.fn("tau2_get_status")).toEqual(await first.fn("tau2_get_status"));
    for (const instance of [first, other]) {
      expect(await instance.tool("lend", LEND)).toMatchObject({ observation: "Error: Book b2 is lent to cy", step: 2 });
      expect(await instance.fn("tau2_send_message", { message: "It costs 7.5" })).toMatchObject({ reward: 1 });
    }
    expect((await first.post("/state/snapshot")).data).toEqual((await other.post("/state/snapshot")).data);
  });

  it("is reset to its start", async () => {
    await using model = await scriptedOpenAi(["Tides, please"]);
    const { first } = await talkTo(model.baseUrl, "lend");
    await first.tool("lend", LEND);
    const { data } = await first.post("/task/reset", { task: "lend" });
    expect(data).toMatchObject({ task: { id: "lend", domain: "library" }, observation: "Tides, please" });
    expect(await first.fn("tau2_get_status")).toMatchObject({ step: 0, last_observation: "Tides, please" });
    expect(await first.tool("lend", LEND)).toMatchObject({ step: 1, observation: expect.stringContaining('"cy"') });
  });

  it("is in the same state as before after a cancelled message", async () => {
    const heard = Promise.withResolvers<void>();
    let hangs = true;
    await using model = await scriptedOpenAi(({ turn }) => {
      if (turn === 0) return "Tides, please";
      if (!hangs) return "Thanks ###STOP###";
      heard.resolve();
      return new Promise<never>(() => {});
    });
    const { first } = await talkTo(model.baseUrl, "lend");
    await first.tool("lend", LEND);
    const [status, snapshot] = [await first.fn("tau2_get_status"), await first.post("/state/snapshot")];
    const client = new AbortController();
    const saying = fetch(`${served?.url}/env-instance/${first.id}/functions/tau2_send_message`, {
      method: "POST",
      body: JSON.stringify({ message: "It costs 7.5" }),
      signal: client.signal,
    });
    await heard.promise;
    client.abort();
    await expect(saying).rejects.toThrow();
    hangs = false;
    expect(await first.post("/state/snapshot")).toEqual(snapshot);
    expect(await first.fn("tau2_get_status")).toEqual(status);
    expect(await first.fn("tau2_send_message", { message: "It costs 7.5" })).toMatchObject({ reward: 1, done: true });
  });

  it("can be ended again after its scoring was cancelled", async () => {
    const verdict = { expectedOutcome: "The agent is kind.", metExpectation: true, reasoning: "It is." };
    const judging = Promise.withResolvers<void>();
    let hangs = true;
    await using model = await scriptedOpenAi(({ tools }) => {
      if (tools.length > 0) return "Hello";
      if (!hangs) return JSON.stringify({ results: [verdict] });
      judging.resolve();
      return new Promise<never>(() => {});
    });
    const { first } = await talkTo(model.baseUrl, "kindly", {
      TAU2_JUDGE_LLM: "scripted",
      TAU2_JUDGE_LLM_API_BASE: model.baseUrl,
      TAU2_JUDGE_LLM_API_KEY: "k",
    });
    const client = new AbortController();
    const ending = fetch(`${served?.url}/env-instance/${first.id}/functions/tau2_done`, { method: "POST", signal: client.signal });
    await judging.promise;
    client.abort();
    await expect(ending).rejects.toThrow();
    hangs = false;
    expect(await first.fn("tau2_done")).toMatchObject({ done: true, total_reward: 1, steps: 1 });
  });

  it("uses a judge if the task needs one, and has no reward without one", async () => {
    const verdict = { expectedOutcome: "The agent is kind.", metExpectation: true, reasoning: "It is." };
    await using model = await scriptedOpenAi(({ tools }) => (tools.length > 0 ? "Hello" : JSON.stringify({ results: [verdict] })));
    const { first, post, at } = await talkTo(model.baseUrl, "kindly");
    expect(await first.fn("tau2_done")).toMatchObject({ total_reward: null, unscored: expect.stringContaining("no judge model") });
    expect(await first.post("/task/reward")).toMatchObject({ success: false, error: expect.stringContaining("no judge model") });
    const judged = await post("/env-instance", {
      environment_variables: {
        TAU2_TASK_ID: "kindly",
        TAU2_JUDGE_LLM: "scripted",
        TAU2_JUDGE_LLM_API_BASE: model.baseUrl,
        TAU2_SOLO_MODE: "false",
        TAU2_JUDGE_LLM_API_KEY: "k",
      },
    });
    expect(await at(String((judged.data as Json).id)).fn("tau2_done")).toMatchObject({ total_reward: 1 });
  });

  it("has no reward if the user model fails", async () => {
    await using model = await scriptedOpenAi(() => ({ status: 400, message: "no" }));
    const { first } = await talkTo(model.baseUrl, "lend");
    expect(await first.fn("tau2_get_status")).toMatchObject({ done: true, unscored: expect.stringContaining("the episode failed") });
    expect(await first.post("/task/reward")).toMatchObject({ success: false, error: expect.stringContaining("answered 400") });
  });

  it("ends at the limit of steps with a reward of 0", async () => {
    await using model = await scriptedOpenAi(["Tides, please"]);
    const { first } = await talkTo(model.baseUrl, "lend", { TAU2_MAX_STEPS: "2" });
    expect(await first.tool("lend", LEND)).toMatchObject({ done: true, reward: 0 });
    expect(await first.fn("tau2_get_status")).toMatchObject({ termination_reason: "max_steps" });
  });

  it("without a user model accepts tool calls and refuses messages", async () => {
    const { first } = await open({ TAU2_TASK_ID: "lend", TAU2_SOLO_MODE: "false" });
    expect(await first.post("/functions/tau2_send_message", { message: "hello" })).toMatchObject({
      success: false,
      error: expect.stringContaining("TAU2_USER_LLM"),
    });
    expect(await first.tool("lend", LEND)).toMatchObject({ done: false, step: 1 });
  });
});

describe("a user and a judge that are declared models", () => {
  const declared = { TAU2_TASK_ID: "kindly", TAU2_SOLO_MODE: "false", TAU2_USER_LLM: "user", TAU2_JUDGE_LLM: "judge" };
  const verdict = JSON.stringify({ results: [{ expectedOutcome: "x", metExpectation: true, reasoning: "y" }] });
  const script = ["Tides, please", "Thanks ###STOP###", verdict];

  it("get the same requests through the platform as at an endpoint of their own, apart from the name of the model", async () => {
    const requests = async (variables: Record<string, string>, models?: ModelCalls) => {
      await using model = await scriptedOpenAi(script);
      const own = (prefix: string) => ({ [prefix]: "scripted", [`${prefix}_API_BASE`]: model.baseUrl, [`${prefix}_API_KEY`]: "k" });
      const endpoints = models === undefined ? { ...own("TAU2_USER_LLM"), ...own("TAU2_JUDGE_LLM") } : {};
      const http = new ModelHttp({ retries: 0, timeoutMs: 10_000 });
      const at = {
        api: "chat",
        baseUrl: model.baseUrl,
        apiKey: "k",
        sampling: {},
        extraBody: {},
        headers: {},
        wantsTokens: false,
      } as const;
      const platform: ModelCalls = {
        call: (_, name, call, signal) => callModel({ ...at, name }, call, http, { signal: signal ?? AbortSignal.timeout(10_000) }),
      };
      const { first } = await open({ ...variables, ...endpoints }, models === undefined ? undefined : platform);
      await first.fn("tau2_send_message", { message: "Hello" });
      const reward = await first.post("/task/reward");
      await served?.close();
      await http.close();
      const bodies = model.requests.map(({ body }) => Object.fromEntries(Object.entries(body).filter(([key]) => key !== "model")));
      return { bodies, reward };
    };
    const direct = await requests(declared);
    const routed = await requests(declared, { call: () => Promise.reject(new Error("replaced")) });
    expect(direct.bodies).toHaveLength(3);
    expect(routed).toEqual(direct);
    // The order of members too.
    for (const [at, body] of direct.bodies.entries()) {
      expect(JSON.stringify(routed.bodies[at]?.messages)).toBe(JSON.stringify(body.messages));
    }
  });

  it("leave the episode unscored with model.failed if they fail, also in a copy of it", async () => {
    const failing: ModelCalls = { call: () => Promise.reject(new PlatformError("model.failed", "the endpoint is gone")) };
    const { first, post, at } = await open(declared, failing);
    const failed = { error: expect.stringContaining("the endpoint is gone"), errorInfo: { code: "model.failed" } };
    expect(await first.post("/task/reward")).toMatchObject(failed);
    const { data: snapshot } = await first.post("/state/snapshot");
    const { data } = await post("/env-instance", { environment_variables: declared, snapshot });
    expect(await at(String((data as Json).id)).post("/task/reward")).toMatchObject(failed);
  });

  it("are those of an endpoint if a base or a key is given", () => {
    const read = (more: Record<string, string>) => readSettings({ TAU2_DATA_DIR, TAU2_USER_LLM: "openai/x", ...more }).user;
    expect(read({})).toMatchObject({ model: "openai/x", isDeclared: true });
    expect(read({ TAU2_USER_LLM_API_KEY: "k" })).toMatchObject({ model: "x", baseUrl: "https://api.openai.com/v1" });
    expect(read({ TAU2_USER_LLM_API_BASE: "http://h/v1" })).toMatchObject({ model: "x", baseUrl: "http://h/v1" });
  });
});

describe("what an episode says about itself", () => {
  const talkTo = (baseUrl: string, task = "lend") =>
    open({
      TAU2_TASK_ID: task,
      TAU2_SOLO_MODE: "false",
      TAU2_USER_LLM: "openai/scripted",
      TAU2_USER_LLM_API_BASE: baseUrl,
      TAU2_USER_LLM_API_KEY: "sk-quiet",
    });

  it("is a prompt with the policy, the greeting and the user's first message, also after the first action", async () => {
    await using model = await scriptedOpenAi(["Tides, please", "Thanks ###STOP###"]);
    const { first } = await talkTo(model.baseUrl);
    const prompt = await first.get("/episode/prompt");
    expect(prompt).toEqual({
      messages: [
        { role: "system", content: await first.fn("tau2_get_system_prompt") },
        { role: "assistant", content: "Hi! How can I help you today?" },
        { role: "user", content: "Tides, please" },
      ],
    });
    await first.tool("lend", LEND);
    expect(await first.get("/episode/prompt")).toEqual(prompt);
  });

  it("is a prompt with only the policy and the ticket in solo mode", async () => {
    const { first } = await open({ TAU2_TASK_ID: "kindly" });
    expect(await first.get("/episode/prompt")).toEqual({
      messages: [{ role: "system", content: await first.fn("tau2_get_system_prompt") }],
    });
  });

  it("is the user's answer to the agent's words, until the user stops", async () => {
    await using model = await scriptedOpenAi(["Tides, please", "How much?", "Thanks ###STOP###"]);
    const { first } = await talkTo(model.baseUrl);
    expect(await first.get("/episode/status")).toEqual({ done: false, reason: null });
    expect(await first.say("One moment.")).toEqual({
      messages: [{ role: "user", content: "How much?" }],
      status: { done: false, reason: null },
    });
    await first.tool("lend", LEND);
    const over = { done: true, reason: "user_stop" };
    expect(await first.say("It costs 7.5")).toEqual({ messages: [{ role: "user", content: "Thanks ###STOP###" }], status: over });
    expect(await first.get("/episode/status")).toEqual(over);
    expect((await first.post("/episode/reward")).data).toEqual({ reward: 1, components: {} });
  });

  it("does not read the agent's words as a call, and a fork has the same conversation", async () => {
    await using model = await scriptedOpenAi(["Tides, please", "What?"]);
    const { first, at } = await talkTo(model.baseUrl);
    const before = await first.fn("tau2_get_state_hash");
    expect(await first.say("lend(book_id='b2', member='cy')")).toMatchObject({ messages: [{ content: "What?" }] });
    expect(await first.fn("tau2_get_state_hash")).toEqual(before);
    const { data } = (await first.post("/fork", { count: 1 })) as { data: { id: string }[] };
    const fork = at(data[0]?.id ?? "");
    expect(await fork.get("/state/digest")).toEqual(await first.get("/state/digest"));
    expect(await fork.get("/episode/prompt")).toEqual(await first.get("/episode/prompt"));
    await fork.tool("lend", LEND);
    expect(await fork.get("/state/digest")).not.toEqual(await first.get("/state/digest"));
  });

  it("reports blank words to the agent and goes on", async () => {
    await using model = await scriptedOpenAi(["Tides, please"]);
    const { first } = await talkTo(model.baseUrl);
    expect(await first.say(" ")).toEqual({
      messages: [{ role: "user", content: "Invalid action with error: Action cannot be empty" }],
      status: { done: false, reason: null },
    });
  });

  it("counts what the agent writes beside a call as communicated, also in a fork, but does not tell it to the user", async () => {
    await using model = await scriptedOpenAi(["Tides, please", "Thanks ###STOP###"]);
    const { first, at } = await talkTo(model.baseUrl);
    const call = { id: "c", type: "function", function: { name: "lend", arguments: "{}" } };
    await first.post("/episode/hear", { message: { role: "assistant", content: "It costs 7.5", tool_calls: [call] } });
    await first.tool("lend", LEND);
    const { data } = (await first.post("/fork", { count: 1 })) as { data: { id: string }[] };
    for (const one of [first, at(data[0]?.id ?? "")]) {
      expect(await one.say("Bye.")).toMatchObject({ status: { reason: "user_stop" } });
      expect(await one.post("/task/reward")).toMatchObject({ data: { reward: 1 } });
    }
    expect(JSON.stringify(model.requests)).not.toContain("7.5");
  });

  it("is without rewards for an agent that must see observations only, and a fork stays so", async () => {
    await using model = await scriptedOpenAi(["Tides, please"]);
    const { first, at } = await talkTo(model.baseUrl);
    await first.post("/task/reset", { observations_only: true });
    const seen = async (instance: typeof first, name: string, args: Json = {}) => {
      const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
      const { result } = (await instance.post("/mcp", request)) as { result: { content: unknown; structuredContent?: unknown } };
      return [result.content, result.structuredContent];
    };
    expect(await seen(first, "count_books")).toEqual([[{ type: "text", text: '"3"' }], undefined]);
    const { data } = (await first.post("/fork", { count: 1 })) as { data: { id: string }[] };
    expect(await seen(at(data[0]?.id ?? ""), "done")).toEqual([[{ type: "text", text: "" }], undefined]);
  });

  it("ends a solo episode when the agent speaks, with a reward of 0", async () => {
    const { first } = await open({ TAU2_TASK_ID: "lend" });
    expect(await first.say("Hello.")).toEqual({ messages: [], status: { done: true, reason: "agent_error" } });
    expect(await first.post("/task/reward")).toMatchObject({ data: { reward: 0 } });
  });

  it("is an error when the agent speaks and no model plays the user", async () => {
    const { first } = await open({ TAU2_TASK_ID: "lend", TAU2_SOLO_MODE: "false" });
    const message = { role: "assistant", content: "Hello." };
    expect(JSON.stringify(await first.post("/episode/reply", { message }))).toContain("set TAU2_USER_LLM");
  });

  it.each(["a model", "nobody"])("is a solution that gets the whole reward when %s plays the user", async (player) => {
    await using model = await scriptedOpenAi(["Tides, please"]);
    const { first } = await (player === "nobody" ? open({ TAU2_TASK_ID: "lend", TAU2_SOLO_MODE: "false" }) : talkTo(model.baseUrl));
    const { actions } = (await first.get("/episode/oracle")) as { actions: { tool?: string; arguments: Json; say: string }[] };
    expect(actions.at(-1)?.say).toContain("7.5");
    for (const action of actions) {
      if (action.tool !== undefined) await first.tool(action.tool, action.arguments);
      else expect(await first.say(action.say)).toEqual({ messages: [], status: { done: true, reason: "agent_stop" } });
    }
    expect(await first.post("/task/reward")).toMatchObject({ data: { reward: 1, done: true } });
  });
});

describe("settings", () => {
  it("throw an error that names the wrong setting", () => {
    expect(() => readSettings({})).toThrow(/neither TAU2_DATA_DIR nor AENV_DATA_DIR is set; .*aenv bench data tau2 --from/);
    expect(() => readSettings({ AENV_DATA_DIR: "/nowhere" })).toThrow(/\/nowhere\/tau2 does not exist; .*aenv bench data tau2 --from/);
    expect(() => readSettings({ TAU2_DATA_DIR, TAU2_MAX_STEPS: "many" })).toThrow("TAU2_MAX_STEPS must be a number");
  });

  it("refuse an unknown variable and suggest the most similar one", async () => {
    expect(() => readSettings({ TAU2_DATA_DIR, TAU2_MAXSTEP: "9" })).toThrow(
      "tau2 has no variable TAU2_MAXSTEP; did you mean TAU2_MAX_STEPS?",
    );
    expect(() => readSettings({ TAU2_DATA_DIR, TAU2_COLOR: "red" })).toThrow(/TAU2_COLOR; its variables are TAU2_DOMAIN, TAU2_TASK_ID/);
    const options = { domains: new Map([["library", library]]), open: openLibrary };
    expect(() => tau2Environment({ ...options, variables: { TAU2_DOMIAN: "library" } })).toThrow("did you mean TAU2_DOMAIN?");
    const { post } = await open();
    expect(await post("/env-instance", { environment_variables: { TAU2_TASKID: "lend" } })).toMatchObject({
      success: false,
      message: expect.stringContaining("did you mean TAU2_TASK_ID?"),
    });
  });

  it("find the prepared data, unless TAU2_DATA_DIR is set", () => {
    using tree = temporaryTree({ "tau2/hashes.json": {} });
    expect(readSettings({ AENV_DATA_DIR: tree.path }).dataPath).toBe(`${tree.path}/tau2`);
    expect(readSettings({ AENV_DATA_DIR: tree.path, TAU2_DATA_DIR }).dataPath).toBe(TAU2_DATA_DIR);
  });

  it("are shown without keys, and URLs without their passwords and queries", () => {
    const variables = { TAU2_X_API_KEY: "a", TAU2_X_API_BASE: "https://me:secret@host/v1?key=b", PATH: "c", TAU2_DOMAIN: "d" };
    expect(shownVariables(variables)).toEqual({ TAU2_X_API_BASE: "https://host/v1", TAU2_DOMAIN: "d" });
  });
});
