import { ContentBlockSchema } from "@modelcontextprotocol/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { block } from "../mcp/testing/requests.ts";
import { readBlock, readBlocks } from "./content-block.ts";

describe("readBlock", () => {
  it("accepts exactly what MCP's own schema accepts, with the same result", () => {
    fc.assert(
      fc.property(fc.oneof(block, fc.jsonValue()), (value) => {
        const parsed = ContentBlockSchema.safeParse(value);
        expect(readBlock(value)).toEqual(parsed.success ? parsed.data : null);
      }),
      { numRuns: 1_000 },
    );
  });

  it("drops fields that MCP does not define", () => {
    expect(readBlock({ type: "text", text: "a", colour: "red" })).toEqual({ type: "text", text: "a" });
  });

  it("does not accept names of Object.prototype as types", () => {
    for (const type of ["constructor", "toString", "__proto__"]) expect(readBlock({ type })).toBeNull();
  });
});

describe("readBlocks", () => {
  it("returns all blocks, or null", () => {
    const text = { type: "text", text: "a" };
    expect(readBlocks([text, text])).toEqual([text, text]);
    expect(readBlocks([text, { type: "text" }])).toBeNull();
  });
});
