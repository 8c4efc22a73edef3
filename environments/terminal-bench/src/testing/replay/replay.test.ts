import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, temporaryTree, terminalBenchVectors } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { replayFile } from "./replay.ts";

describeNeeding("terminal-bench-vectors", "the reference's answers", () => {
  it("are reproduced", () => {
    const tally = replayFile(terminalBenchVectors);
    expect(tally.allMatch, tally.print("vectors")).toBe(true);
  });
});

describe("a file of vectors", () => {
  const replay = (vectors: unknown): { readonly allMatch: boolean; readonly text: string } => {
    using tree = temporaryTree();
    const file = join(tree.path, "any-name.json");
    writeFileSync(file, JSON.stringify(vectors));
    const tally = replayFile(file);
    return { allMatch: tally.allMatch, text: tally.print("file") };
  };

  it("matches only if every case matches", () => {
    const right = { file: "reward.txt", content: " 0.5\n", upstream: { rewards: { reward: 0.5 } } };
    const wrong = { file: "reward.txt", content: "0.5", upstream: { rewards: { reward: 1 } } };
    expect(replay({ reward: [right] })).toMatchObject({ allMatch: true });
    const { allMatch, text } = replay({ reward: [right, wrong] });
    expect(allMatch).toBe(false);
    expect(text).toContain("reward: 1 of 2 match");
  });

  it("goes on after a case that cannot be compared, and counts it as different", () => {
    const odd = { parser: "unknown", log: "", results: {} };
    const right = { in: "a", out: "a" };
    const { allMatch, text } = replay({ tb1_parsers: [odd, 7], env_template: [{ host: {}, cases: [{}] }], strip_canary: [right] });
    expect(allMatch).toBe(false);
    expect(text).toContain("file: 1 of 4 match");
    expect(text).toContain("there is no parser 'unknown'");
  });

  it("may be a trajectory in ATIF, which must be valid", () => {
    const document = {
      schema_version: "ATIF-v1.7",
      session_id: "s",
      agent: { name: "a", version: "1" },
      steps: [{ step_id: 1, source: "user", message: "m" }],
    };
    expect(replay(document)).toMatchObject({ allMatch: true, text: expect.stringContaining("atif: 1 of 1 match") });
    expect(replay({ ...document, steps: 1 })).toMatchObject({ allMatch: false });
  });

  it("with an unknown kind does not match, nor does an empty one", () => {
    expect(replay({ colors: [{}] })).toMatchObject({ allMatch: false });
    expect(replay({})).toMatchObject({ allMatch: false });
  });
});
