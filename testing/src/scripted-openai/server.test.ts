import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { Script } from "./script.ts";
import { type ScriptedOpenAi, scriptedOpenAi } from "./server.ts";

type Body = Record<string, unknown>;
type Answer = { status: number; body: Record<string, never>; text: string };

const user = { role: "user", content: "hello" };
const add = { name: "add", parameters: { type: "object", properties: { n: { type: "number" } } } };
const chatTool = (fields: Body = {}) => ({ type: "function", function: { ...add, ...fields } });
const responsesTool = (fields: Body = {}) => ({ type: "function", ...add, strict: false, ...fields });

let model: ScriptedOpenAi;
afterEach(() => model.close());

async function start(script: Script): Promise<void> {
  model = await scriptedOpenAi(script);
}

async function post(path: string, body: unknown): Promise<Answer> {
  const response = await fetch(model.baseUrl + path, {
    method: "POST",
    headers: { authorization: "Bearer key", "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text, body: text.startsWith("{") ? JSON.parse(text) : {} };
}

const chat = (body: Body) => post("/chat/completions", { model: "m", messages: [user], ...body });
const responses = (body: Body) => post("/responses", { model: "m", input: "hello", ...body });

/** The JSON of each event's data line. */
function events(text: string): Body[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)));
}

describe("the script", () => {
  it("keeps no requests with keepsRequests: false, and still counts them", async () => {
    const counted: number[] = [];
    model = await scriptedOpenAi(({ index }) => `${counted.push(index)}`, { keepsRequests: false });
    await chat({});
    await chat({});
    expect([counted, model.requests]).toEqual([[0, 1], []]);
  });

  it("is indexed by the conversation, so that many conversations share it", async () => {
    await start(["first", "second"]);
    const said = { role: "assistant", content: "first" };
    const later = await chat({ messages: [user, said, user] });
    const earlier = await Promise.all([chat({}), chat({})]);
    expect(later.body).toMatchObject({ choices: [{ message: { content: "second" } }] });
    expect(earlier.map(({ text }) => JSON.parse(text).choices[0].message.content)).toEqual(["first", "first"]);
  });

  it("answers an error that is not retried when it has no turn left", async () => {
    await start([]);
    const { status, body } = await chat({});
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { message: "the script has 0 turns, but turn 1 was requested", code: "script_ended" } });
    expect(model.refusals).toHaveLength(1);
  });

  it("may be a function of the request, which has one format for both APIs", async () => {
    await start(({ api, turn, messages, tools }) => `${api} ${turn} ${messages.at(-1)?.text} ${tools[0]?.name}`);
    expect((await chat({ tools: [chatTool()] })).body).toMatchObject({ choices: [{ message: { content: "chat 0 hello add" } }] });
    expect((await responses({ tools: [responsesTool()] })).text).toContain("responses 0 hello add");
    expect(model.requests.map(({ index, api }) => [index, api])).toEqual([
      [0, "chat"],
      [1, "responses"],
    ]);
  });

  it("reports its own failure to the client", async () => {
    await start(() => {
      throw new Error("no idea");
    });
    expect((await chat({})).body).toMatchObject({ error: { message: "the script failed: Error: no idea" } });
  });

  it("can fail like an overloaded API", async () => {
    await start([{ status: 429, message: "slow down", headers: { "retry-after": "1" } }]);
    const { status, body } = await chat({});
    expect(status).toBe(429);
    expect(body).toMatchObject({ error: { message: "slow down", type: "rate_limit_error" } });
  });
});

describe("an answer", () => {
  const turn = {
    text: "so",
    toolCalls: [
      { name: "add", arguments: { n: 1 } },
      { name: "add", arguments: "{oops", id: "mine" },
    ],
  };

  it("has text and tool calls in the format of chat completions", async () => {
    await start([turn]);
    const { body } = await chat({ tools: [chatTool()] });
    expect(body).toMatchObject({
      object: "chat.completion",
      choices: [
        {
          finish_reason: "tool_calls",
          message: {
            role: "assistant",
            content: "so",
            tool_calls: [
              { id: "call_0_0", type: "function", function: { name: "add", arguments: '{"n":1}' } },
              { id: "mine", type: "function", function: { name: "add", arguments: "{oops" } },
            ],
          },
        },
      ],
    });
  });

  it("has text and tool calls in the format of Responses", async () => {
    await start([turn]);
    const { body } = await responses({ tools: [responsesTool()] });
    expect(body).toMatchObject({
      object: "response",
      status: "completed",
      output: [
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "so" }] },
        { type: "function_call", call_id: "call_0_0", name: "add", arguments: '{"n":1}' },
        { type: "function_call", call_id: "mine", arguments: "{oops" },
      ],
    });
  });

  it("is the same streamed or not", async () => {
    const text = fc.string({ unit: "grapheme", maxLength: 40 });
    const calls = fc.array(fc.record({ name: fc.constantFrom("add", "take"), arguments: fc.dictionary(fc.string(), fc.jsonValue()) }), {
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(text, calls, async (said, toolCalls) => {
        await using server = await scriptedOpenAi(() => ({ text: said, toolCalls: toolCalls.map((call) => ({ ...call, id: "id" })) }));
        model = server;
        expect(assembleChat((await chat({ stream: true })).text)).toEqual(JSON.parse((await chat({})).text).choices[0].message);
        const finished = events((await responses({ stream: true })).text);
        const whole = JSON.parse((await responses({})).text);
        const withoutIds = (items: unknown) => JSON.parse(JSON.stringify(items).replaceAll(/"(msg|fc)_\d+/g, '"$1'));
        const { response } = finished.at(-1) as { response: Body };
        expect(withoutIds(response.output)).toEqual(withoutIds(whole.output));
        expect(assembleResponses(finished)).toEqual({ text: said, arguments: toolCalls.map((call) => JSON.stringify(call.arguments)) });
      }),
      { numRuns: 25 },
    );
  });

  it("ends a streamed chat with the requested usage, and DONE", async () => {
    await start(["hi"]);
    const { text } = await chat({ stream: true, stream_options: { include_usage: true } });
    expect(events(text).at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } });
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true);
  });
});

function assembleChat(text: string): Body {
  const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = [];
  let content = "";
  for (const { choices } of events(text) as { choices: { delta: Body & { tool_calls?: (Body & { function: Body })[] } }[] }[]) {
    const delta = choices[0]?.delta;
    content += delta?.content ?? "";
    for (const { index, ...call } of delta?.tool_calls ?? []) {
      const known = calls[index as number];
      if (known === undefined) calls.push(call as never);
      else known.function.arguments += call.function.arguments;
    }
  }
  return { role: "assistant", content: content === "" ? null : content, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) };
}

function assembleResponses(all: Body[]): { text: string; arguments: string[] } {
  const args = new Map<unknown, string>();
  let text = "";
  for (const { type, delta, output_index, item } of all as (Body & { item?: Body })[]) {
    if (type === "response.output_text.delta") text += delta;
    if (type === "response.output_item.added" && item?.type === "function_call") args.set(output_index, "");
    if (type === "response.function_call_arguments.delta") args.set(output_index, args.get(output_index) + String(delta));
  }
  return { text, arguments: [...args.values()] };
}

describe("the checks", () => {
  const call = { id: "c1", type: "function", function: { name: "add", arguments: "{}" } };
  const called = { role: "assistant", content: null, tool_calls: [call] };
  const answered = { role: "tool", tool_call_id: "c1", content: "2" };
  const item = { type: "function_call", call_id: "c1", name: "add", arguments: "{}" };
  const output = { type: "function_call_output", call_id: "c1", output: "2" };

  it("accept a conversation in which every call is answered", async () => {
    await start(() => "fine");
    expect((await chat({ messages: [user, called, answered], tools: [chatTool()] })).status).toBe(200);
    expect((await responses({ input: [user, item, output], tools: [responsesTool()] })).status).toBe(200);
    expect(model.requests.map(({ messages }) => messages.slice(1))).toEqual(
      Array(2).fill([
        { role: "assistant", text: "", toolCalls: [{ id: "c1", name: "add", arguments: "{}" }] },
        { role: "tool", text: "2", toolCallId: "c1" },
      ]),
    );
  });

  it.each([
    ["env@1.0.0/add", "tools[0].function.name"],
    ["add.one", "tools[0].function.name"],
    ["", "tools[0].function.name"],
    ["a".repeat(65), "tools[0].function.name"],
  ])("refuse the tool name '%s'", async (name, param) => {
    await start(["never"]);
    const { status, body } = await chat({ tools: [chatTool({ name })] });
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { type: "invalid_request_error", param, code: "invalid_value" } });
    expect((await responses({ tools: [responsesTool({ name })] })).body).toMatchObject({ error: { param: "tools[0].name" } });
    expect(model.requests).toEqual([]);
  });

  it.each([
    ["parameters that are no object schema", { parameters: { type: "string" } }, 'must be of type "object"'],
    ["parameters without a type", { parameters: {} }, 'must be of type "object"'],
    ["an object without properties", { parameters: { type: "object" } }, "missing 'properties'"],
    ["a union at the top", { parameters: { ...add.parameters, anyOf: [] } }, "'anyOf' at the top level"],
    ["an open object in strict mode", { strict: true }, "the schema: 'additionalProperties'"],
    [
      "an optional field in strict mode",
      { strict: true, parameters: { ...add.parameters, additionalProperties: false } },
      "'required' must hold every property, and lacks 'n'",
    ],
    [
      "a default deep inside in strict mode",
      {
        strict: true,
        parameters: {
          type: "object",
          additionalProperties: false,
          required: ["list"],
          properties: { list: { type: "array", items: { anyOf: [{ type: "null" }, { type: "string", default: "x" }] } } },
        },
      },
      "the schema.list.items.anyOf.1: 'default' is not permitted",
    ],
  ])("refuse %s", async (_, fields, message) => {
    await start(["never"]);
    for (const { status, body } of [await chat({ tools: [chatTool(fields)] }), await responses({ tools: [responsesTool(fields)] })]) {
      expect(status).toBe(400);
      expect(body).toMatchObject({ error: { code: "invalid_function_parameters", message: expect.stringContaining(message) } });
    }
  });

  it("accept a schema that fits strict mode", async () => {
    await start(() => "fine");
    const strict = { strict: true, parameters: { ...add.parameters, required: ["n"], additionalProperties: false } };
    expect((await chat({ tools: [chatTool(strict)] })).status).toBe(200);
    expect((await responses({ tools: [responsesTool(strict)] })).status).toBe(200);
    expect(model.requests.map(({ tools }) => tools[0]?.strict)).toEqual([true, true]);
  });

  it.each([
    ["a call without an answer", [user, called], [user, item], "none was given for c1"],
    ["a call answered too late", [user, called, user, answered], [user, item, user, output], "none was given for c1"],
    ["an answer without a call", [user, answered], [user, output], "No tool call found for the tool output with call id 'c1'"],
    ["a call answered twice", [user, called, answered, answered], [user, item, output, output], "No tool call found"],
  ])("refuse %s", async (_, messages, input, message) => {
    await start(["never"]);
    for (const { status, body } of [await chat({ messages }), await responses({ input })]) {
      expect(status).toBe(400);
      expect(body).toMatchObject({ error: { message: expect.stringContaining(message) } });
    }
  });

  it.each([
    ["a body that is not JSON", "{", "not a JSON object"],
    ["no model", { messages: [user] }, "'model'"],
    ["no messages", { model: "m", messages: [] }, "'messages'"],
    ["an unknown role", { model: "m", messages: [{ role: "owl", content: "hu" }] }, "'messages[0].role'"],
    ["an empty list of tools", { model: "m", messages: [user], tools: [] }, "'tools'"],
  ])("refuse %s", async (_, body, message) => {
    await start(["never"]);
    const answer = await post("/chat/completions", body);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(message);
  });

  it("reject a request without a key, and an unknown route", async () => {
    await start(["never"]);
    expect((await fetch(`${model.baseUrl}/models`)).status).toBe(401);
    expect((await post("/embeddings", {})).status).toBe(404);
  });
});

describe("the rest of the API", () => {
  it("lists one model", async () => {
    await start([]);
    const response = await fetch(`${model.baseUrl}/models`, { headers: { authorization: "Bearer key" } });
    expect(await response.json()).toMatchObject({ object: "list", data: [{ id: "scripted", object: "model" }] });
  });

  it("continues a stored response without its instructions", async () => {
    await start([{ toolCalls: [{ name: "add" }] }, "done"]);
    const first = await responses({ instructions: "be kind", tools: [responsesTool()] });
    const next = { previous_response_id: first.body.id, input: [{ type: "function_call_output", call_id: "call_0_0", output: "2" }] };
    expect((await responses(next)).text).toContain("done");
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect((await responses({ ...next, previous_response_id: "gone" })).body).toMatchObject({
      error: { code: "previous_response_not_found" },
    });
  });
});

describe("token ids", () => {
  const answered = { role: "assistant", content: "first" };
  const parsed = async (body: Body) => JSON.parse((await chat({ return_token_ids: true, logprobs: true, top_logprobs: 0, ...body })).text);

  it("are returned as vLLM does, and a later prompt extends the tokens before it", async () => {
    model = await scriptedOpenAi(["first", "second"], { tokens: { engine: "vllm" } });
    const [first, later] = await Promise.all([parsed({}), parsed({ messages: [user, answered, user] })]);
    const held = [...first.prompt_token_ids, ...first.choices[0].token_ids];
    expect(first.choices[0].logprobs.content).toHaveLength(first.choices[0].token_ids.length);
    expect(later.prompt_token_ids.slice(0, held.length)).toEqual(held);
    expect((await chat({})).body).not.toHaveProperty("prompt_token_ids");
  });

  it("are returned as SGLang does, and drift where the template is said to drift", async () => {
    model = await scriptedOpenAi(["first", "second"], { tokens: { engine: "sglang", drifts: true, weightVersion: "7" } });
    const [first, later] = await Promise.all([parsed({}), parsed({ messages: [user, answered, user] })]);
    const held = [...first.choices[0].prompt_token_ids, ...first.choices[0].response_token_ids];
    expect(first).toMatchObject({ metadata: { weight_version: "7" } });
    expect(later.choices[0].prompt_token_ids.slice(0, held.length)).not.toEqual(held);
  });

  it("needs no key where the script says so", async () => {
    model = await scriptedOpenAi(["first"], { needsKey: false });
    const response = await fetch(`${model.baseUrl}/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "m", messages: [user] }),
    });
    expect(response.status).toBe(200);
  });
});
