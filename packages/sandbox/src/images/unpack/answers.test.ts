import { describe, expect, it } from "vitest";
import { parseAnswer } from "./answers.ts";

describe("an answer of the process that unpacks", () => {
  it.each([
    '{"kind":"done"}',
    '{"kind":"limit","limit":"layerBytes","value":7}',
    '{"kind":"error","code":"sandbox.unsupported","message":"install GNU tar"}',
  ])("is read as it was written: %s", (line) => {
    expect(parseAnswer(line)).toEqual(JSON.parse(line));
  });

  it.each([
    "",
    "null",
    "[]",
    "{",
    '{"kind":"other"}',
    '{"kind":"limit","limit":"toString","value":7}',
    '{"kind":"limit","limit":"ratio","value":"7"}',
    '{"kind":"error"}',
  ])("that it would not write is an error of the image: %s", (line) => {
    expect(parseAnswer(line)).toMatchObject({ kind: "error", code: "bundle.invalid" });
  });

  it("has no other code, and no message of any length", () => {
    const answer = parseAnswer(JSON.stringify({ kind: "error", code: "access.denied", message: "x".repeat(10_000) }));
    expect(answer).toEqual({ kind: "error", code: null, message: "x".repeat(2_000) });
  });
});
