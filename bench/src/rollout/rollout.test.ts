import { expect, it } from "vitest";
import { startPlatformServer } from "../platform/server.ts";
import type { Measurement } from "../row.ts";
import { measureMemory } from "./memory.ts";
import type { Scale } from "./scale.ts";
import { measureSpeed } from "./speed.ts";

const SMALL: Scale = {
  rounds: 1,
  warmUps: 1,
  episodes: { 1: 2, 64: 70 },
  directEpisodes: 10,
  pythonEpisodes: 2,
  fewEpisodes: 2,
  manyEpisodes: 4,
};

it("plays and measures episodes, and every reward is right", { timeout: 300_000 }, async () => {
  const rows = new Map<string, Measurement>();
  const report = { add: (one: Measurement) => void rows.set(one.name, one), skip: () => {}, progress: () => {} };
  await using server = await startPlatformServer({ store: "memory:" });
  const ref = await server.publish("ledger", "shared");
  await measureSpeed(report, server, ref, SMALL);
  await measureMemory(report, server, ref, SMALL);
  expect(rows.get("episodes of 10 calls, concurrency 64")?.value).toBeGreaterThan(0);
  expect(rows.get("peak memory of the runner in a small heap, 4 episodes")?.value).toBeGreaterThan(0);
});
