import { PlatformError, rolloutRequest } from "@aenv/contract";
import { type Lease, noopAgent } from "@aenv/rollout";
import { expect, it } from "vitest";
import { RolloutPlayer } from "./player.ts";
import type { RolloutRow, RolloutWork } from "./row.ts";

const never = new AbortController().signal;
const caller = { roles: [], tokenId: null } as unknown as RolloutWork["caller"];

/** Instances of a server that has memory for one sandbox of a task. An episode is scored when it is told to. */
function roomForOne() {
  const ends: (() => void)[] = [];
  let used = 0;
  let refused = 0;
  const instance = {
    episode: { abilities: async () => ({}) },
    reset: async () => ({ task: null, observation: null }),
    listTools: async () => [],
    score: () => new Promise((resolve) => ends.push(() => resolve({ reward: 1, components: {} }))),
  } as unknown as Lease["instance"];
  const provenance = { environment: "e@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
  const acquire = async (): Promise<Lease> => {
    if (used > 0) {
      refused++;
      throw new PlatformError("sandbox.no_capacity", "the server has no capacity for another sandbox of a task now");
    }
    used++;
    return { instance, provenance, release: async () => void used-- };
  };
  return { pools: { hold: () => ({ acquire, [Symbol.dispose]: () => {} }) }, ends, refused: () => refused };
}

it("lets rollouts wait for which the server has no memory, and all of them are scored", { timeout: 30_000 }, async () => {
  const room = roomForOne();
  const agents = { agentOf: noopAgent, playersOf: () => undefined } as unknown as ConstructorParameters<typeof RolloutPlayer>[0]["agents"];
  const player = new RolloutPlayer({ pools: room.pools, agents, version: "0", now: () => new Date() });
  const play = (id: string) => {
    const request = rolloutRequest.parse({ id, environment: "e", agent: { kind: "noop" }, retries: 0 });
    const row = { id, owner: "ada", run: null, attempt: 0, losses: 0 } as unknown as RolloutRow;
    return player.play(row, { request, environment: "e@1.0.0", environmentDigest: null, caller }, never, async () => true);
  };
  const playing = ["one", "two", "three"].map(play);
  const scored: string[] = [];
  for (const one of playing) void one.then((trajectory) => scored.push(trajectory?.outcome.kind ?? "lost"));
  for (let done = 1; done <= playing.length; done++) {
    await expect.poll(() => room.ends.length, { timeout: 10_000 }).toBe(done);
    room.ends.at(-1)?.();
    await expect.poll(() => scored.length, { timeout: 10_000 }).toBe(done);
  }
  expect(scored).toEqual(["scored", "scored", "scored"]);
  expect(room.refused()).toBeGreaterThanOrEqual(2);
});
