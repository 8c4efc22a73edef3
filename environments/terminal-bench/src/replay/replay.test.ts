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

  it("with an unknown kind does not match, nor does an empty one", () => {
    expect(replay({ colors: [{}] })).toMatchObject({ allMatch: false });
    expect(replay({})).toMatchObject({ allMatch: false });
  });
});
