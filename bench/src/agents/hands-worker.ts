import { InstancePool, oracleAgent, playEpisode, playOptions } from "@aenv/rollout";
import { answerParent } from "../processes/answer.ts";

/** Where hands are played. */
export interface Table {
  readonly controlUrl: string;
  readonly dataUrl: string;
  readonly ref: string;
}
export interface Hands {
  readonly hands: number;
  readonly concurrency: number;
}

let table: Table;

answerParent({
  open: (given: Table) => {
    table = given;
  },
  play,
});

/** Plays hands of Kuhn poker, one agent in both roles, and returns how long that took. Every hand must sum to zero. */
async function play({ hands, concurrency }: Hands): Promise<number> {
  const { ref, ...options } = table;
  await using instances = new InstancePool({ environment: ref, options, environmentDigest: null });
  const episode = playOptions({
    agent: oracleAgent(),
    limits: {},
    deadlineMs: 10 * 60_000,
    acquire: (spec, signal) => instances.acquire(spec, signal),
    provenance: { model: null, client_version: "0" },
    cancel: new AbortController().signal,
  });
  const one = async (seed: number) => {
    const task = { id: "kuhn", split: null, index: null };
    const spec = { id: `hand-${seed}`, run: null, attempt: 0, task, group: null, seed, metadata: {} };
    const { outcome, roles } = await playEpisode(spec, episode);
    const stakes = Object.values(roles ?? {}).map((role) => (role.outcome.kind === "scored" ? role.outcome.reward : Number.NaN));
    if (outcome.kind !== "scored" || stakes.length !== 2 || Math.abs((stakes[0] ?? 0) + (stakes[1] ?? 0)) > 0)
      throw new Error(`hand ${seed} does not sum to zero: ${JSON.stringify([outcome, stakes])}`);
  };
  // Instances are created before the time is taken.
  await Promise.all(Array.from({ length: concurrency }, (_, seed) => one(seed)));
  const from = performance.now();
  let begun = 0;
  const lane = async () => {
    while (begun++ < hands) await one(begun);
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return performance.now() - from;
}
