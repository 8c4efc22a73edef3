import { expect, it } from "vitest";
import type { Measurement } from "../row.ts";
import { measureA2a } from "./a2a.ts";
import { measureSelfPlay } from "./self-play.ts";
import { measureTrees } from "./trees.ts";

it("measures calls, trees and hands, and every answer is right", { timeout: 300_000 }, async () => {
  const rows = new Map<string, Measurement>();
  const report = { add: (one: Measurement) => void rows.set(one.name, one), skip: () => {}, progress: () => {} };
  await measureA2a(report, { rounds: 1, round: { turns: 20, ms: 10_000 } });
  await measureTrees(report, { rounds: 1, creates: 2 });
  await measureSelfPlay(report, { rounds: 1, hands: 4 });
  expect([...rows.values()].filter(({ value }) => !(value > 0))).toEqual([]);
  expect(rows.size).toBeGreaterThanOrEqual(6);
});
