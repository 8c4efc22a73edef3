import { PlatformError } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { noopAgent } from "../agents/scripted.ts";
import type { EpisodeInstance } from "../player/instance.ts";
import { Capacity } from "./capacity.ts";
import { type PlayOptions, playEpisode } from "./play.ts";

const never = new AbortController().signal;
const noCapacity = () => new PlatformError("sandbox.no_capacity", "the server has no capacity");

/** A server with so much capacity. An episode ends when it is told to. */
function serverWith(capacity: number) {
  const ends: (() => void)[] = [];
  let used = 0;
  let refused = 0;
  const instance = {
    episode: { abilities: async () => ({}), oracle: async () => null },
    reset: async () => ({ task: null, observation: null }),
    listTools: async () => [],
    score: () => new Promise((resolve) => ends.push(() => resolve({ reward: 1, components: {} }))),
  } as unknown as EpisodeInstance;
  const provenance = { environment: "e@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
  const acquire: PlayOptions["acquire"] = async () => {
    if (used === capacity) {
      refused++;
      throw noCapacity();
    }
    used++;
    return { instance, provenance, release: async () => void used-- };
  };
  return { acquire, ends, refused: () => refused };
}

function play(server: Pick<ReturnType<typeof serverWith>, "acquire">, own: Partial<PlayOptions>) {
  return playEpisode(
    { id: "e", run: null, attempt: 0, task: { id: null, split: null, index: null }, group: null, seed: 1, metadata: {} },
    {
      agent: noopAgent(),
      recorder: null,
      model: null,
      limits: {},
      deadlineMs: 60_000,
      recordsDigests: false,
      acquire: server.acquire,
      provenance: { model: null, client_version: "0" },
      costOf: () => null,
      cancel: never,
      now: () => performance.now(),
      date: () => new Date(),
      ...own,
    },
  );
}

describe("episodes for which the server has no capacity", () => {
  it("wait and are all scored, as many at once as the server takes", async () => {
    const server = serverWith(2);
    const capacity = new Capacity({ recheckMs: 3_600_000 });
    const played = Array.from({ length: 7 }, () => play(server, { capacity }));
    for (let ended = 0; ended < 7; ended++) {
      await expect.poll(() => server.ends.length).toBeGreaterThan(0);
      expect(server.ends.length).toBeLessThanOrEqual(2);
      server.ends.shift()?.();
    }
    expect((await Promise.all(played)).map(({ outcome }) => outcome.kind)).toEqual(Array(7).fill("scored"));
    expect(capacity.waiting).toBe(0);
  });

  it("try again by themselves when others have freed capacity", async () => {
    let attempts = 0;
    const server = serverWith(1);
    const acquire: PlayOptions["acquire"] = async (...given) => {
      if (attempts++ < 3) throw noCapacity();
      return server.acquire(...given);
    };
    const played = play({ acquire }, { capacity: new Capacity({ recheckMs: 1 }) });
    await expect.poll(() => server.ends.length).toBe(1);
    server.ends[0]?.();
    expect((await played).outcome.kind).toBe("scored");
  });

  it("fail if the server never has capacity while none of the run is playing", async () => {
    let now = 0;
    const capacity = new Capacity({ recheckMs: 1, now: () => (now += 100) });
    const { outcome } = await play(serverWith(0), { capacity, deadlineMs: 1_000 });
    expect(outcome).toMatchObject({ kind: "unscored", cause: "sandbox", stage: "start", message: "the server has no capacity" });
  });

  it("end when the run is cancelled", async () => {
    const stop = new AbortController();
    const capacity = new Capacity({ recheckMs: 3_600_000 });
    const played = play(serverWith(0), { capacity, cancel: stop.signal });
    await expect.poll(() => capacity.waiting).toBe(1);
    stop.abort();
    expect((await played).outcome).toMatchObject({ kind: "unscored", cause: "cancelled" });
  });
});
