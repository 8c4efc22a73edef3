import type { CallToolResult } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memorySource, textResult } from "./memory-source.ts";
import { modelTools, parseArguments } from "./model-tool.ts";

/** The text for the model when a tool returns this. */
async function read(answer: CallToolResult): Promise<string | undefined> {
  const [tool] = await modelTools(memorySource({ "e@1/t": { run: () => answer } }));
  return tool?.call({});
}

describe("a model's tool", () => {
  it("has a name that models accept, and passes the arguments to its tool", async () => {
    const source = memorySource({
      "shop@1.0.0/orders.cancel": { description: "Cancels.", run: (args) => textResult(JSON.stringify(args)) },
    });
    const [tool] = await modelTools(source, { prefix: "shop_" });
    expect(tool).toMatchObject({ name: "shop_orders_cancel", description: "Cancels." });
    expect(await tool?.call({ id: "42" })).toBe('{"id":"42"}');
  });

  it("keeps the environment's schema unchanged", async () => {
    const schema = fc
      .dictionary(fc.string(), fc.jsonValue())
      .map((rest) => ({ ...rest, type: "object", properties: { n: { default: 1 } } }));
    await fc.assert(
      fc.asyncProperty(schema, async (inputSchema) => {
        const [tool] = await modelTools(memorySource({ t: { inputSchema, run: () => textResult("") } }));
        expect(tool?.parameters).toEqual(inputSchema);
      }),
    );
  });

  it("adds the type object to a schema without a type", async () => {
    const [tool] = await modelTools(memorySource({ t: { inputSchema: { title: "None" }, run: () => textResult("") } }));
    expect(tool?.parameters).toEqual({ type: "object", properties: {}, title: "None" });
  });

  it.each([[1], ["text"], [[]], [null], [undefined]])("tells the model when its arguments are %j and not an object", async (args) => {
    const [tool] = await modelTools(memorySource({ t: { run: () => textResult("never") } }));
    expect(await tool?.call(args)).toMatch(/^Error: the arguments must be a JSON object, not /);
  });

  it("throws what the platform throws", async () => {
    const lost = () => {
      throw new Error("connection lost");
    };
    const [tool] = await modelTools(memorySource({ t: { run: lost } }));
    await expect(tool?.call({})).rejects.toThrow("connection lost");
  });

  it("passes the abort signal on", async () => {
    const abort = new AbortController();
    abort.abort();
    const [tool] = await modelTools(memorySource({ t: { run: (_, signal) => textResult(String(signal?.aborted)) } }));
    expect(await tool?.call({}, abort.signal)).toBe("true");
    expect(await tool?.call({})).toBe("undefined");
  });
});

describe("the text for the model", () => {
  it("is the text of all blocks", async () => {
    const link = { type: "resource_link", uri: "file:///a.txt", name: "a" };
    const resource = { type: "resource", resource: { uri: "file:///b.txt", text: "inside b" } };
    expect(await read({ content: [{ type: "text", text: "one" }, { type: "text", text: "" }, resource, link] })).toBe(
      "one\n\ninside b\nfile:///a.txt",
    );
  });

  it("names a picture instead of including its bytes", async () => {
    expect(await read({ content: [{ type: "image", data: "aGk=", mimeType: "image/png" }] })).toBe(
      "[image image/png, left out: this is text only]",
    );
  });

  it("is the structured content if there are no blocks", async () => {
    expect(await read({ content: [], structuredContent: { n: 1 } })).toBe('{"n":1}');
    expect(await read({ content: [] })).toBe("");
  });

  it("says that a tool has failed", async () => {
    expect(await read({ ...textResult("the till is empty"), isError: true })).toBe("Error: the till is empty");
    expect(await read({ content: [], isError: true })).toBe("Error: the tool failed without a message");
  });
});

describe("parseArguments", () => {
  it("reads what JSON.stringify writes of an object", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        expect(parseArguments(JSON.stringify(value))).toEqual({ ok: true, value: JSON.parse(JSON.stringify(value)) });
      }),
    );
  });

  it("treats an empty text as no arguments", () => {
    expect(parseArguments(" ")).toEqual({ ok: true, value: {} });
  });

  it("never throws for any text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parsed = parseArguments(text);
        if (!parsed.ok) expect(parsed.message).toMatch(/^the arguments (are not valid JSON: |must be a JSON object, not )/);
      }),
    );
  });
});
