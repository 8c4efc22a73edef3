import type { CallToolResult } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { outputShape, toToolResult } from "./result.ts";
import { compileSchema } from "./schema.ts";

async function convert(value: unknown, output?: z.ZodType): Promise<CallToolResult> {
  return toToolResult(value, output === undefined ? null : outputShape(await compileSchema(output, "x")), "t");
}

describe("toToolResult", () => {
  it("gives text for a string, and nothing for nothing", async () => {
    expect(await convert("hi")).toEqual({ content: [{ type: "text", text: "hi" }] });
    expect(await convert("")).toEqual({ content: [{ type: "text", text: "" }] });
    expect(await convert(undefined)).toEqual({ content: [] });
    expect(await convert(null)).toEqual({ content: [] });
  });

  it("gives an object both as compact JSON and as structured content", async () => {
    expect(await convert({ a: 1, b: undefined, at: new Date(0) })).toEqual({
      content: [{ type: "text", text: '{"a":1,"at":"1970-01-01T00:00:00.000Z"}' }],
      structuredContent: { a: 1, at: "1970-01-01T00:00:00.000Z" },
    });
  });

  it("gives numbers, booleans and arrays as JSON text without structure", async () => {
    expect(await convert(3)).toEqual({ content: [{ type: "text", text: "3" }] });
    expect(await convert(false)).toEqual({ content: [{ type: "text", text: "false" }] });
    expect(await convert([1, "a"])).toEqual({ content: [{ type: "text", text: '[1,"a"]' }] });
    expect(await convert([])).toEqual({ content: [{ type: "text", text: "[]" }] });
  });

  it("passes content blocks and whole results through", async () => {
    const image = { type: "image", data: "aGk=", mimeType: "image/png" };
    expect(await convert(image)).toEqual({ content: [image] });
    expect(await convert([{ type: "text", text: "see" }, image])).toEqual({ content: [{ type: "text", text: "see" }, image] });
    expect(await convert({ content: [image], isError: true })).toEqual({ content: [image], isError: true });
  });

  it("takes what only looks like a block for data", async () => {
    expect(await convert({ type: "image", data: 5 })).toMatchObject({ structuredContent: { type: "image", data: 5 } });
    expect(await convert({ content: "plain" })).toMatchObject({ structuredContent: { content: "plain" } });
  });

  it("checks an output schema and gives what it made of the value", async () => {
    const output = z.object({ total: z.number(), currency: z.string().default("EUR") });
    expect(await convert({ total: 3 }, output)).toEqual({
      content: [{ type: "text", text: '{"total":3,"currency":"EUR"}' }],
      structuredContent: { total: 3, currency: "EUR" },
    });
    expect(await convert({ total: "3" }, output)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("total: ") }] });
  });

  it("holds a whole result to the output schema too, and leaves its blocks alone", async () => {
    const output = z.object({ total: z.number(), currency: z.string().default("EUR") });
    const content = [{ type: "text", text: "three" }];
    expect(await convert({ content, structuredContent: { total: 3 } }, output)).toEqual({
      content,
      structuredContent: { total: 3, currency: "EUR" },
    });
    expect(await convert({ content, structuredContent: { total: "3" } }, output)).toMatchObject({ isError: true });
    expect(await convert({ content }, output)).toMatchObject({
      isError: true,
      content: [{ text: "Output validation error: Tool t has an output schema but no structured content was provided" }],
    });
    expect(await convert({ content, isError: true }, output)).toEqual({ content, isError: true });
    expect(await convert({ content, structuredContent: { result: [1] } }, z.array(z.number()))).toEqual({
      content,
      structuredContent: { result: [1] },
    });
  });

  it("fails for what JSON cannot write, wherever it stands", async () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    for (const value of [{ n: 1n }, ring, { content: [], structuredContent: { n: 1n } }, { type: "text", text: "x", _meta: { n: 1n } }]) {
      await expect(convert(value)).rejects.toThrow("the tool's result cannot be written as JSON: ");
    }
  });

  it("lets no key by the name of __proto__ into the structure", async () => {
    const hostile = JSON.parse('{"a":1,"__proto__":{"admin":true}}');
    expect(JSON.stringify((await convert(hostile)).structuredContent)).toBe('{"a":1}');
    expect(JSON.stringify((await convert({ content: [], structuredContent: hostile })).structuredContent)).toBe('{"a":1}');
  });

  it("wraps what is not an object, and says so in the schema as the original does", async () => {
    const shape = outputShape(await compileSchema(z.array(z.number()), "x"));
    expect(shape.advertised).toMatchObject({ type: "object", required: ["result"], "x-fastmcp-wrap-result": true });
    expect(await toToolResult([1, 2], shape, "t")).toEqual({
      content: [{ type: "text", text: "[1,2]" }],
      structuredContent: { result: [1, 2] },
    });
  });

  it("gives a JSON-safe result for every JSON value", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const result = await convert(value);
        expect(JSON.parse(JSON.stringify(result))).toEqual(result);
      }),
    );
  });
});
