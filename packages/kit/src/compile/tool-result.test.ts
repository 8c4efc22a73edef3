import type { CallToolResult } from "@aenv/contract";
import { ContentBlockSchema } from "@modelcontextprotocol/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { compileSchema } from "./schema.ts";
import { outputShape, toToolResult } from "./tool-result.ts";

async function convert(value: unknown, output?: z.ZodType): Promise<CallToolResult> {
  return toToolResult(value, output === undefined ? null : outputShape(await compileSchema(output, "x")), "t");
}

describe("toToolResult", () => {
  it("converts a string to text, and undefined to no content", async () => {
    expect(await convert("hi")).toEqual({ content: [{ type: "text", text: "hi" }] });
    expect(await convert("")).toEqual({ content: [{ type: "text", text: "" }] });
    expect(await convert(undefined)).toEqual({ content: [] });
    expect(await convert(null)).toEqual({ content: [] });
  });

  it("converts an object to compact JSON and to structured content", async () => {
    expect(await convert({ a: 1, b: undefined, at: new Date(0) })).toEqual({
      content: [{ type: "text", text: '{"a":1,"at":"1970-01-01T00:00:00.000Z"}' }],
      structuredContent: { a: 1, at: "1970-01-01T00:00:00.000Z" },
    });
  });

  it("converts numbers, booleans and arrays to JSON text without structure", async () => {
    expect(await convert(3)).toEqual({ content: [{ type: "text", text: "3" }] });
    expect(await convert(false)).toEqual({ content: [{ type: "text", text: "false" }] });
    expect(await convert([1, "a"])).toEqual({ content: [{ type: "text", text: '[1,"a"]' }] });
    expect(await convert([])).toEqual({ content: [{ type: "text", text: "[]" }] });
  });

  it("passes content blocks and complete results through", async () => {
    const image = { type: "image", data: "aGk=", mimeType: "image/png" };
    expect(await convert(image)).toEqual({ content: [image] });
    expect(await convert([{ type: "text", text: "see" }, image])).toEqual({ content: [{ type: "text", text: "see" }, image] });
    expect(await convert({ content: [image], isError: true })).toEqual({ content: [image], isError: true });
  });

  it("treats a value that only looks like a block as data", async () => {
    expect(await convert({ type: "image", data: 5 })).toMatchObject({ structuredContent: { type: "image", data: 5 } });
    expect(await convert({ content: "plain" })).toMatchObject({ structuredContent: { content: "plain" } });
  });

  it("checks an output schema and returns the parsed value", async () => {
    const output = z.object({ total: z.number(), currency: z.string().default("EUR") });
    expect(await convert({ total: 3 }, output)).toEqual({
      content: [{ type: "text", text: '{"total":3,"currency":"EUR"}' }],
      structuredContent: { total: 3, currency: "EUR" },
    });
    expect(await convert({ total: "3" }, output)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("total: ") }] });
  });

  it("checks a complete result against the output schema too, and keeps its blocks", async () => {
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

  it("fails for a part without a JSON form, at any depth", async () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    const odd = { n: Number.NaN };
    for (const [value, path] of [
      [odd, "n"],
      [ring, "self"],
      [{ type: "text", text: "x", _meta: odd }, "_meta.n"],
      [{ content: [{ type: "text", text: "x", _meta: odd }] }, "content[0]._meta.n"],
      [
        [
          { type: "text", text: "x" },
          { type: "text", text: "y", _meta: odd },
        ],
        "[1]._meta.n",
      ],
      [() => 1, "it"],
    ] as const) {
      await expect(convert(value)).rejects.toThrow(`the tool's result cannot be written as JSON: ${path} is `);
    }
    await expect(convert({ content: [], structuredContent: odd })).rejects.toThrow(
      "the tool's structuredContent cannot be written as JSON: n is ",
    );
    await expect(convert(new Map([["n", Number.NaN]]), z.any())).rejects.toThrow("n is NaN");
  });

  it("converts maps, sets, dates and big integers, in text and structure", async () => {
    const value = { stock: new Map([["chair", 3]]), tags: new Set(["new"]), at: new Date(0), serial: 2n ** 64n };
    const plain = { stock: { chair: 3 }, tags: ["new"], at: "1970-01-01T00:00:00.000Z", serial: "18446744073709551616" };
    expect(await convert(value)).toEqual({ content: [{ type: "text", text: JSON.stringify(plain) }], structuredContent: plain });
    expect(await convert(new Map([["a", 1]]))).toMatchObject({ structuredContent: { a: 1 } });
    expect(await convert({ content: [], structuredContent: new Map([["a", 1]]) })).toEqual({ content: [], structuredContent: { a: 1 } });
    expect(await convert(new Date(0))).toEqual({ content: [{ type: "text", text: "1970-01-01T00:00:00.000Z" }] });
  });

  it("does not change when the environment changes the value later", async () => {
    const cart = { items: ["chair"] };
    const result = await convert(cart);
    cart.items.push("table");
    expect(result.structuredContent).toEqual({ items: ["chair"] });
  });

  it.each<[string, Uint8Array, string | null]>([
    ["a PNG", Buffer.from("89504e470d0a1a0a0000", "hex"), "image/png"],
    ["a JPEG", Buffer.from("ffd8ffe000", "hex"), "image/jpeg"],
    ["a GIF", Buffer.from("GIF89a"), "image/gif"],
    ["a WebP", Buffer.from("RIFF\0\0\0\0WEBPVP8 "), "image/webp"],
    ["a sound in the same wrapping", Buffer.from("RIFF\0\0\0\0WAVE"), null],
    ["a cut-off signature", Buffer.from("RIFF\0\0"), null],
    ["other bytes", new Uint8Array([1, 2]), null],
    ["no bytes", new Uint8Array(), null],
  ])("converts %s to a block", async (_, bytes, mimeType) => {
    const data = Buffer.from(bytes).toString("base64");
    const block =
      mimeType === null
        ? { type: "resource", resource: { uri: "aenv://tool-result", mimeType: "application/octet-stream", blob: data } }
        : { type: "image", data, mimeType };
    const text = { type: "text", text: "see" };
    expect(await convert(bytes)).toEqual({ content: [block] });
    expect(await convert([text, bytes])).toEqual({ content: [text, block] });
    expect(await convert({ content: [bytes], isError: false })).toEqual({ content: [block], isError: false });
    expect(ContentBlockSchema.safeParse(block).success).toBe(true);
  });

  it("accepts bytes as an image's data, and converts bytes inside of data to base64", async () => {
    const bytes = new Uint8Array([1, 2]);
    expect(await convert({ type: "image", data: bytes, mimeType: "image/avif" })).toEqual({
      content: [{ type: "image", data: "AQI=", mimeType: "image/avif" }],
    });
    expect(await convert({ file: bytes })).toMatchObject({ structuredContent: { file: "AQI=" } });
  });

  it("drops a key named __proto__ from the structure", async () => {
    const hostile = JSON.parse('{"a":1,"__proto__":{"admin":true}}');
    expect(JSON.stringify((await convert(hostile)).structuredContent)).toBe('{"a":1}');
    expect(JSON.stringify((await convert({ content: [], structuredContent: hostile })).structuredContent)).toBe('{"a":1}');
  });

  it("wraps values other than objects, and marks that in the schema as the original does", async () => {
    const shape = outputShape(await compileSchema(z.array(z.number()), "x"));
    expect(shape.advertised).toMatchObject({ type: "object", required: ["result"], "x-fastmcp-wrap-result": true });
    expect(await toToolResult([1, 2], shape, "t")).toEqual({
      content: [{ type: "text", text: "[1,2]" }],
      structuredContent: { result: [1, 2] },
    });
  });

  it("returns a JSON-safe result for every JSON value", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const result = await convert(value);
        expect(JSON.parse(JSON.stringify(result))).toEqual(result);
      }),
    );
  });
});
