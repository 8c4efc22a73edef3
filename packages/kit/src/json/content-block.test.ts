import { ContentBlockSchema } from "@modelcontextprotocol/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { block } from "../mcp/testing/requests.ts";
import { readBlock, readBlocks } from "./content-block.ts";

describe("readBlock", () => {
  it("takes for a block what MCP's own schema takes, and reads it the same way", () => {
    fc.assert(
      fc.property(fc.oneof(block, fc.jsonValue()), (value) => {
        const parsed = ContentBlockSchema.safeParse(value);
        expect(readBlock(value)).toEqual(parsed.success ? parsed.data : null);
      }),
      { numRuns: 1_000 },
    );
  });

  it("leaves out fields that MCP does not know", () => {
    expect(readBlock({ type: "text", text: "a", colour: "red" })).toEqual({ type: "text", text: "a" });
  });

  it("is not misled by names that every object has", () => {
    for (const type of ["constructor", "toString", "__proto__"]) expect(readBlock({ type })).toBeNull();
  });
});

describe("readBlocks", () => {
  it("gives all or nothing", () => {
    const text = { type: "text", text: "a" };
    expect(readBlocks([text, text])).toEqual([text, text]);
    expect(readBlocks([text, { type: "text" }])).toBeNull();
  });
});
