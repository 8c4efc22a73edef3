import { setTimeout as pause } from "node:timers/promises";
import { scriptedOpenAi } from "@aenv/testing";
import { expect, it } from "vitest";
import { SOLVES } from "../fixtures/rollouts.ts";
import { BROKEN_MODEL, RolloutLoad } from "./load.ts";
import { type Sample, startMeasuredServer } from "./measured-server.ts";
import { mediansOfThirds } from "./thirds.ts";

/** CI sets 10, and the nightly run 60. Without it, a short run shows that the load and the measurement work; it is no measurement. */
const MINUTES = Number(process.env.AENV_MEMORY_MINUTES ?? 0);
const SECONDS = MINUTES > 0 ? MINUTES * 60 : 3;
const SAMPLE_SECONDS = MINUTES > 0 ? 5 : 1;
/** The last third may be larger than the middle one by this factor. In the first, caches fill and code is compiled. */
const FLAT = 1.05;
/**
 * Resident memory settles later than live memory: allocators keep what they once had to take. Ten minutes bound its growth, and an hour
 * shows that it is flat.
 */
const RESIDENT_FLAT = MINUTES >= 60 ? FLAT : 1.25;

/** What a server keeps by design is full long before the last third: results, and processes that wait for an instance. */
const flags = { access: "on", rolloutsAtOnce: 8, rolloutResultBytes: 2 ** 20, poolMin: 1, poolMax: 2, startTimeout: "10m" };

const title = MINUTES > 0 ? `is flat in the last third of ${MINUTES} minutes of rollouts` : "is measured while rollouts are played";

it(`the memory of a server ${title}`, { timeout: (SECONDS + 300) * 1_000 }, async () => {
  const solve = (turn: number) => (Array.isArray(SOLVES) ? (SOLVES[turn] ?? "done") : "done");
  await using model = await scriptedOpenAi(
    ({ turn, body }) => (body.model === BROKEN_MODEL ? { status: 400, message: "no such model" } : solve(turn)),
    { keepsRequests: false, tokens: { engine: "vllm" } },
  );
  await using server = await startMeasuredServer(flags);
  const load = new RolloutLoad(server, model);
  const playing = load.run();
  const samples: Sample[] = [];
  const measure = async () => {
    const from = performance.now();
    // A collection takes a part of a second of each five, and more on a busy machine.
    while (samples.length < 3 || performance.now() - from < SECONDS * 1_000) {
      await pause(SAMPLE_SECONDS * 1_000);
      samples.push(await server.sample());
    }
  };
  // A rollout that ends as it should not ends the run.
  await Promise.race([measure(), playing]);
  load.stop();
  await playing;
  const medians = { live: thirdsOf(samples, "liveBytes"), resident: thirdsOf(samples, "residentBytes") };
  console.log(`memory of a server, MiB by third: ${JSON.stringify(medians)}; rollouts: ${JSON.stringify(load.counts)}`);
  expect(load.counts.scored).toBeGreaterThan(0);
  if (MINUTES === 0) return;
  expect(growthOf(medians.live)).toBeLessThan(FLAT);
  expect(growthOf(medians.resident)).toBeLessThan(RESIDENT_FLAT);
});

function growthOf([, middle, last]: ReturnType<typeof mediansOfThirds>): number {
  return last / middle;
}

/** Medians in MiB. */
function thirdsOf(samples: readonly Sample[], what: keyof Sample): ReturnType<typeof mediansOfThirds> {
  return mediansOfThirds(samples.map((sample) => Math.round(sample[what] / 2 ** 16) / 16));
}
