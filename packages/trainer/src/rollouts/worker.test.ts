import { type Outcome, PlatformError, rolloutRequest, type Trajectory } from "@aenv/contract";
import { MemoryStore, Scheduler } from "@aenv/server/testing";
import { expect, it } from "vitest";
import { scored } from "./fixtures/scored.ts";
import { RolloutTable } from "./rollout-table.ts";
import { keyOf, type RolloutRow, type RolloutWork, requestRows, rolloutRows } from "./row.ts";
import { StoredResults } from "./stored-results.ts";
import { RolloutWorker } from "./worker.ts";

const now = () => new Date("2026-01-02T00:00:00.000Z");
const KEY = keyOf("ada", "a");

/** A store that has no space for the first results. */
class FullStore extends MemoryStore {
  refusals: number;

  constructor(refusals: number) {
    super();
    this.refusals = refusals;
  }

  override async insert<T>(...[kind, ...row]: Parameters<MemoryStore["insert"]>): ReturnType<MemoryStore["insert"]> {
    if (kind === "rollout-result" && this.refusals-- > 0) throw new PlatformError("store.unavailable", "no space left");
    return super.insert<T>(kind, ...(row as [string, T, Record<string, string>]));
  }
}

/** A worker with one queued rollout, which is scored at once. */
async function openWorker(refusals: number, isRevoked = false, change: Partial<Trajectory> = {}) {
  const store = new FullStore(refusals);
  const rows = rolloutRows(store);
  const request = rolloutRequest.parse({ id: "a", environment: "e", agent: { kind: "noop" } });
  const work = { request, environment: "e@1.0.0", environmentDigest: null, caller: { roles: [], tokenId: null } } as unknown as RolloutWork;
  const row: RolloutRow = {
    id: "a",
    owner: "ada",
    run: null,
    digest: "",
    state: "queued",
    work,
    lease: null,
    attempt: 0,
    losses: 0,
    createdAt: now().toISOString(),
    done: null,
  };
  await rows.insert(KEY, row);
  const outcomes: Outcome[] = [];
  const failures: unknown[] = [];
  const limits = { keepMs: 1, maxBytes: 1, maxBytesPerOwner: 1 };
  const table = new RolloutTable({ rows, requests: requestRows(store), results: new StoredResults(store), ...limits, now }, (_, outcome) =>
    outcomes.push(outcome),
  );
  const played: number[] = [];
  const play = async (taken: RolloutRow) => {
    played.push(taken.attempt);
    return { ...scored(taken, work, now()), ...change };
  };
  const worker = new RolloutWorker(
    {
      player: { play },
      pools: { endThoseOf: async () => {}, close: async () => {} },
      http: { close: async () => {} },
      scheduler: new Scheduler({}),
      serverId: "s",
      isAlone: true,
      stillValid: async () => {
        if (isRevoked) throw new PlatformError("access.unauthenticated", "the token t of 'ada' was revoked or has expired");
      },
      livingServers: async () => new Set(["s"]),
      now,
      onFailure: (error) => failures.push(error),
    },
    table,
  );
  /** Rounds of the worker, until the rollout has a result. */
  const untilDone = async () => {
    for (let round = 0; round < 10 && outcomes.length === 0; round++) {
      await worker.tidy();
      await expect.poll(() => worker.running).toBe(0);
    }
    return outcomes;
  };
  return { untilDone, played, failures, stateOf: async () => (await table.find(KEY))?.state };
}

it("plays a rollout again whose result could not be stored", async () => {
  const { untilDone, played, failures, stateOf } = await openWorker(1);
  expect(await untilDone()).toEqual([{ kind: "scored", reward: 1, components: {} }]);
  expect([played, failures.length, await stateOf()]).toEqual([[0, 1], 1, "done"]);
});

it("ends a rollout unscored whose result could not be stored three times", async () => {
  const { untilDone, played, stateOf } = await openWorker(3);
  expect(await untilDone()).toMatchObject([
    { kind: "unscored", cause: "sandbox", message: expect.stringContaining("could not store the result") },
  ]);
  expect([played, await stateOf()]).toEqual([[0, 1, 2], "done"]);
});

it("ends a queued rollout unscored, without playing it, if its token was revoked", async () => {
  const { untilDone, played, stateOf } = await openWorker(0, true);
  const message = expect.stringContaining("was revoked or has expired");
  expect(await untilDone()).toMatchObject([{ kind: "unscored", cause: "cancelled", retryable: false, message }]);
  expect([played, await stateOf()]).toEqual([[], "done"]);
});

it("ends a rollout unscored whose result is too large to be stored, and does not play it again", async () => {
  const tooLong = { toJSON: () => "x".repeat(2 ** 30) } as unknown as Trajectory["messages"];
  const { untilDone, played, stateOf } = await openWorker(0, false, { messages: tooLong });
  // Before: it could not be stored, so it was played three times.
  expect(await untilDone()).toMatchObject([
    { kind: "unscored", cause: "agent", message: expect.stringContaining("larger than 67108864 bytes") },
  ]);
  expect([played, await stateOf()]).toEqual([[0], "done"]);
});
