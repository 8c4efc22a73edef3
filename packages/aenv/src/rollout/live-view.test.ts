import { stripVTControlCharacters } from "node:util";
import type { EpisodeScore, RunProgress } from "@aenv/rollout";
import picocolors from "picocolors";
import { expect, it } from "vitest";
import type { Terminal } from "../terminal/terminal.ts";
import { LiveView } from "./live-view.ts";

const scores = (["sandbox", "model", "timeout"] as const).map(
  (cause) => ({ reward: null, cause, tokens: 1_000_000, cost: 12.5 }) as unknown as EpisodeScore,
);

/** What is written of a run with a long line, at a terminal of 80 columns or elsewhere. */
function written(isTty: boolean): string[] {
  const parts: string[] = [];
  const stderr = { colors: picocolors.createColors(true), isTty, columns: 80, write: (text: string) => void parts.push(text) };
  const view = new LiveView({ stderr } as unknown as Terminal);
  for (const done of [0, 1_000_000]) view.show({ done, total: 1_000_000, running: 64, scores, last: null } as unknown as RunProgress);
  return parts;
}

it("is one line that is redrawn at a terminal, with a column left, and whole lines elsewhere", () => {
  const drawn = written(true);
  expect(drawn).toHaveLength(2);
  for (const line of drawn) {
    expect(line.startsWith("\r\x1b[2K")).toBe(true);
    // A line that fills the last column, or a longer one, makes the terminal scroll.
    expect(stripVTControlCharacters(line).replace("\r", "")).toHaveLength(79);
  }
  const [, last] = written(false);
  expect(stripVTControlCharacters(last ?? "")).toMatch(/^1000000\/1000000 done, 64 running.*3000000 tokens {2}cost .*\n$/);
});
