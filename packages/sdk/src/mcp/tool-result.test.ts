import { describe, expect, it } from "vitest";
import { ValidationError } from "../errors/errors.ts";
import { ToolResult } from "./tool-result.ts";

describe("ToolResult", () => {
  it("joins the text blocks and leaves other blocks whole", () => {
    const image = { type: "image", data: "aGk=", mimeType: "image/png" };
    const result = new ToolResult({ content: [{ type: "text", text: "one" }, image, { type: "text", text: "two" }] });
    expect(result.text).toBe("one\ntwo");
    expect(result.content[1]).toEqual(image);
    expect(result.isError).toBe(false);
  });

  it("keeps an empty text empty", () => {
    const result = new ToolResult({ content: [{ type: "text", text: "" }] });
    expect(result.text).toBe("");
    expect(result.content).toEqual([{ type: "text", text: "" }]);
  });

  it("prefers structured content to the text in json()", () => {
    const result = new ToolResult({ content: [{ type: "text", text: '{"n":1}' }], structuredContent: { n: 2 } });
    expect(result.json()).toEqual({ n: 2 });
  });

  it("parses the text as JSON without structured content", () => {
    expect(new ToolResult({ content: [{ type: "text", text: "[1,2]" }] }).json<number[]>()).toEqual([1, 2]);
  });

  it("has the status of the episode, and none if the server sent none or an invalid one", () => {
    const withMeta = (meta: unknown) => new ToolResult({ content: [], _meta: meta });
    const status = { done: true, reason: "ten echoes" };
    expect(withMeta({ "aenv/status": status, other: 1 }).status).toEqual(status);
    for (const meta of [undefined, null, [], {}, { "aenv/status": true }, { "aenv/status": { done: "yes", reason: null } }])
      expect([meta, withMeta(meta).status]).toEqual([meta, undefined]);
  });

  it("names the text that is not JSON in the error", () => {
    const result = new ToolResult({ content: [{ type: "text", text: "sunny" }] });
    expect(() => result.json()).toThrow(ValidationError);
    expect(() => result.json()).toThrow("sunny");
    expect(() => new ToolResult({ content: [] }).json()).toThrow("it has no text");
  });
});
