import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, swebenchPath } from "@aenv/testing";
import { expect, it } from "vitest";
import { replayFile } from "./replay.ts";

const folder = join(swebenchPath, "golden");
const SLOW_MS = 120_000;

describeNeeding("swebench-data", "the reference's answers", () => {
  for (const file of existsSync(folder) ? readdirSync(folder) : []) {
    it(`of ${file} are reproduced`, { timeout: SLOW_MS }, () => {
      const tally = replayFile(join(folder, file));
      expect(tally.allMatch, tally.print(file)).toBe(true);
    });
  }
});
