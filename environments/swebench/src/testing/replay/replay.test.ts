import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { replayFile } from "./replay.ts";

const parser = { parser: "parse_log_gotest", instance_id: "a__b-1", version: "1", log: "--- PASS: A (0.1s)", map: [["A", "PASSED"]] };
const raising = { parser: "parse_log_jekyll", instance_id: "x", version: "", log: "", error: "IndexError" };
const classify = { kind: "classify", input: "Killed", output: ["out_of_memory", "environment"] };

function replay(content: string | Uint8Array, name = "vectors") {
  using tree = temporaryTree({});
  const file = join(tree.path, name);
  writeFileSync(file, content);
  return replayFile(file);
}

const lines = (...records: readonly object[]): string => records.map((record) => `${JSON.stringify(record)}\n`).join("");

describe("vectors", () => {
  it("are recognized by their members, not by the name of the file", () => {
    const tally = replay(lines(parser, raising, classify));
    expect(tally.print("file")).toBe(
      ["file: 3 of 3 match", "  classify: 1 of 1 match", "  parse_log_gotest: 1 of 1 match", "  parse_log_jekyll: 1 of 1 match"].join("\n"),
    );
    expect(tally.allMatch).toBe(true);
  });

  it("may be compressed, or a list", () => {
    expect(replay(gzipSync(lines(parser, classify))).allMatch).toBe(true);
    expect(replay(JSON.stringify([parser, classify], null, 2)).allMatch).toBe(true);
  });

  it("of predictions in a file that is neither .json nor .jsonl raise", () => {
    const predictions = (ext: string, outcome: object) => ({ kind: "predictions", input: { ext, text: "[]" }, ...outcome });
    // before: a .txt file was read as JSON, the one miss of 3,829 checks.
    expect(replay(lines(predictions("txt", { error: "ValueError" }), predictions("json", { output: [] }))).allMatch).toBe(true);
  });

  it("that differ are shown with both values", () => {
    const tally = replay(lines({ ...parser, map: [["A", "FAILED"]] }, parser));
    expect(tally.allMatch).toBe(false);
    expect(tally.print("file")).toContain("file: 1 of 2 match");
    expect(tally.print("file")).toContain('got    [["A","PASSED"]]');
    expect(tally.print("file")).toContain('wanted [["A","FAILED"]]');
  });

  it("in another order of tests differ", () => {
    const log = "--- PASS: A (0.1s)\n--- PASS: B (0.1s)";
    expect(
      replay(
        lines({
          ...parser,
          log,
          map: [
            ["B", "PASSED"],
            ["A", "PASSED"],
          ],
        }),
      ).allMatch,
    ).toBe(false);
  });

  it("that should raise, or should not, differ if they do the opposite", () => {
    const { map: _, ...rest } = parser;
    expect(replay(lines({ ...rest, error: "ValueError" })).allMatch).toBe(false);
    expect(replay(lines({ ...raising, error: undefined, map: [] })).allMatch).toBe(false);
  });

  it("that cannot be compared are differences, and the others are counted", () => {
    const odd = { kind: 1, input: 2 };
    const tally = replay(`${lines(parser, odd)}no JSON\n${lines(classify)}`);
    expect(tally.allMatch).toBe(false);
    expect(tally.print("file")).toContain("file: 2 of 4 match");
  });

  it("of an unknown form are differences, and a file without vectors does not match", () => {
    expect(replay(lines({ a: 1 })).allMatch).toBe(false);
    expect(replay(lines({ kind: "new", input: 1, output: 2 })).allMatch).toBe(false);
    expect(replay("[]").allMatch).toBe(false);
  });
});
