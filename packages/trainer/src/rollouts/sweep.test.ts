import { ada, bob, MemoryStore } from "@aenv/server/testing";
import { expect, it } from "vitest";
import { Rollouts, type RolloutsOptions } from "./rollouts.ts";
import { keyOf, type RolloutRow, requestRows, rolloutRows } from "./row.ts";
import { StoredResults } from "./stored-results.ts";

const now = new Date("2026-01-02T00:00:00.000Z");

/** Rollouts in a store, of which none is played. */
async function openStored(
  limits: Pick<RolloutsOptions, "keepMs" | "maxBytes" | "maxBytesPerOwner">,
  ...stored: readonly Partial<RolloutRow>[]
) {
  const store = new MemoryStore();
  const rows = rolloutRows(store);
  const results = new StoredResults(store);
  for (const own of stored) {
    const id = own.id ?? "a";
    const owner = own.owner ?? "ada";
    const key = keyOf(owner, id);
    const row: RolloutRow = {
      id,
      owner,
      run: null,
      digest: "",
      state: "done",
      work: null,
      lease: null,
      attempt: 0,
      losses: 0,
      createdAt: now.toISOString(),
      done: null,
      ...own,
    };
    await rows.insert(key, row);
    if (row.done !== null)
      await results.insert(row.done.resultKey, { fields: new Map([["id", JSON.stringify(id)]]), bytes: row.done.bytes });
  }
  const rollouts = new Rollouts({
    rows,
    requests: requestRows(store),
    results,
    now: () => now,
    isAlone: true,
    ...limits,
  } as unknown as RolloutsOptions);
  const left = async (caller = ada) => (await rollouts.list({ limit: 100 }, caller)).map(({ id }) => id);
  return { rollouts, left, results: async () => (await store.list("rollout-result", { limit: 100 })).length };
}

const doneAt = (id: string, hoursAgo: number, bytes = 1): Partial<RolloutRow> => ({
  id,
  done: { at: new Date(now.getTime() - hoursAgo * 3_600_000).toISOString(), resultKey: `result-${id}`, bytes },
});

it("removes results that are older than they are kept, and nothing that is not done", async () => {
  const limits = { keepMs: 24 * 3_600_000, maxBytes: 1_000, maxBytesPerOwner: 1_000 };
  const { rollouts, left, results } = await openStored(limits, doneAt("old", 25), doneAt("new", 23), { id: "waits", state: "queued" });
  await rollouts.sweep();
  expect(await left()).toEqual(["new", "waits"]);
  expect(await results()).toBe(1);
});

it("removes the oldest results while there are too many bytes", async () => {
  const limits = { keepMs: 24 * 3_600_000, maxBytes: 100, maxBytesPerOwner: 100 };
  const { rollouts, left, results } = await openStored(limits, doneAt("a", 1, 60), doneAt("b", 3, 60), doneAt("c", 2, 30));
  await rollouts.sweep();
  expect(await left()).toEqual(["a", "c"]);
  expect(await results()).toBe(2);
});

it("removes no result of an owner for another owner's, however old it is and however many the other one has", async () => {
  const limits = { keepMs: 24 * 3_600_000, maxBytes: 100, maxBytesPerOwner: 100 };
  const bobs = Array.from({ length: 12 }, (_, at) => ({ ...doneAt(`b${at}`, 12 - at, 15), owner: "bob" }));
  const { rollouts, left, results } = await openStored(limits, doneAt("a", 20, 40), ...bobs);
  await rollouts.sweep();
  // Before: the oldest of all were removed, so ada's was the first.
  expect(await left()).toEqual(["a"]);
  expect((await left(bob)).sort()).toEqual(["b10", "b11", "b8", "b9"]);
  expect(await results()).toBe(5);
});

it("removes the oldest results of an owner above the limit of one owner, although there is space", async () => {
  const limits = { keepMs: 24 * 3_600_000, maxBytes: 1_000, maxBytesPerOwner: 50 };
  const { rollouts, left } = await openStored(limits, doneAt("a", 1, 30), doneAt("b", 3, 30), { ...doneAt("c", 5, 30), owner: "bob" });
  await rollouts.sweep();
  expect(await left()).toEqual(["a"]);
  expect(await left(bob)).toEqual(["c"]);
});

it("shows a rollout to its owner only", async () => {
  const { rollouts } = await openStored({ keepMs: 1, maxBytes: 1, maxBytesPerOwner: 1 }, doneAt("a", 0));
  expect(await rollouts.get("a", ada)).toMatchObject({ id: "a" });
  expect(await rollouts.list({ limit: 10 }, bob)).toEqual([]);
  await expect(rollouts.get("a", bob)).rejects.toMatchObject({ code: "rollout.not_found" });
  await expect(rollouts.cancel("a", bob)).rejects.toMatchObject({ code: "rollout.not_found" });
});
