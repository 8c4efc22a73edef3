import { describe, expect, it } from "vitest";
import { memorySource, textResult } from "./memory-source.ts";
import { chatTools, responsesTools } from "./openai.ts";

const inputSchema = { type: "object", properties: { id: { type: "string" }, why: { type: "string", default: "none" } }, required: ["id"] };
const source = memorySource({
  "shop@1.0.0/orders.cancel": {
    description: "Cancels an order.",
    inputSchema,
    run: ({ id }, signal) =>
      id === "0" ? { ...textResult("no order 0"), isError: true } : textResult(`cancelled ${id}${signal?.aborted ? " late" : ""}`),
  },
});
const aborted = AbortSignal.abort();

describe("chatTools", () => {
  it("lists tools in the format of chat completions, with their schema unchanged", async () => {
    const { tools } = await chatTools(source);
    expect(tools).toEqual([
      { type: "function", function: { name: "orders_cancel", description: "Cancels an order.", parameters: inputSchema } },
    ]);
  });

  it.each([
    ["runs a call", "orders_cancel", '{"id":"42"}', "cancelled 42"],
    ["tells the model that the tool has failed", "orders_cancel", '{"id":"0"}', "Error: no order 0"],
    ["tells the model that its JSON is broken", "orders_cancel", '{"id":', 'Error: the arguments are not valid JSON: {"id":'],
    ["tells the model which tools there are", "refund", "{}", "Error: there is no tool 'refund'; there are: orders_cancel"],
  ])("%s", async (_, name, args, content) => {
    const { run } = await chatTools(source);
    expect(await run({ id: "c1", function: { name, arguments: args } })).toEqual({ role: "tool", tool_call_id: "c1", content });
  });

  it("tells the model that a custom tool cannot be called", async () => {
    const { run } = await chatTools(source);
    expect(await run({ id: "c1" })).toMatchObject({ content: "Error: only function tools can be called" });
  });

  it("passes the abort signal on", async () => {
    const { run } = await chatTools(source);
    const call = { id: "c1", function: { name: "orders_cancel", arguments: '{"id":"42"}' } };
    expect(await run(call, { signal: aborted })).toMatchObject({ content: "cancelled 42 late" });
  });
});

describe("responsesTools", () => {
  it("lists tools in the format of the Responses API, never strict", async () => {
    const { tools } = await responsesTools(source);
    expect(tools).toEqual([
      { type: "function", name: "orders_cancel", description: "Cancels an order.", parameters: inputSchema, strict: false },
    ]);
  });

  it("runs a call and returns the output item, also for invalid JSON", async () => {
    const { run } = await responsesTools(source);
    const call = { call_id: "c1", name: "orders_cancel", arguments: '{"id":"42"}' };
    expect(await run(call, { signal: aborted })).toEqual({ type: "function_call_output", call_id: "c1", output: "cancelled 42 late" });
    expect(await run({ ...call, arguments: "nope" })).toMatchObject({ output: "Error: the arguments are not valid JSON: nope" });
  });
});
