import { type Outcome, rolloutPage } from "@aenv/contract";
import { MemoryStore, startApp } from "@aenv/server/testing";
import type { Versioned } from "@aenv/server/trainer-services";
import { expect, it } from "vitest";
import { Rollouts, type RolloutsOptions } from "./rollouts.ts";
import { rolloutRoutes } from "./routes.ts";
import { keyOf, type RolloutRow, requestRows, rolloutRows } from "./row.ts";
import { StoredResults } from "./stored-results.ts";

const RESULT = 9_000_000;
const outcome: Outcome = { kind: "scored", reward: 1, components: {} };

/** Counts the rows with parts of results that are read. */
class CountingStore extends MemoryStore {
  parts = 0;

  override async get<T>(kind: string, key: string): Promise<Versioned<T> | null> {
    if (kind === "rollout-result-part") this.parts++;
    return super.get<T>(kind, key);
  }
}

/** The control port with four rollouts of ada, whose results have 9 MB each, and a connection of ada's. */
async function startLarge() {
  const store = new CountingStore();
  const results = new StoredResults(store);
  const rows = rolloutRows(store);
  for (const id of ["a", "b", "c", "d"]) {
    const fields = new Map(
      Object.entries({ id, outcome, metadata: { long: "x".repeat(RESULT) } }).map(([name, one]) => [name, JSON.stringify(one)]),
    );
    const at = new Date().toISOString();
    const done = { at, resultKey: id, ...(await results.insert(id, { fields, bytes: RESULT })) };
    const row = { id, owner: "ada", run: null, digest: "", environment: "e@1.0.0", state: "done", createdAt: at, done } as const;
    await rows.insert(keyOf("ada", id), { ...row, work: null, lease: null, attempt: 0, losses: 0 } satisfies RolloutRow);
  }
  const rollouts = new Rollouts({ rows, requests: requestRows(store), results } as unknown as RolloutsOptions);
  const app = await startApp(rolloutRoutes({ rollouts }));
  const { token } = await app.tokens.create({ owner: "ada", roles: ["trainer"] });
  const get = (path: string) => app.connect().send(`GET ${path} HTTP/1.0`, "host: 127.0.0.1", `authorization: Bearer ${token}`, "", "");
  return { store, get, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
}

const bodyOf = (text: string): unknown => JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));

it("ends a page of results when it has enough bytes, and names the id to continue after", async () => {
  await using app = await startLarge();
  const page = async (query: string) => rolloutPage.parse(bodyOf(await app.get(`/rollouts?${query}`).closed()));
  const first = await page("limit=10&fields=outcome");
  expect(first).toMatchObject({ rollouts: [{ id: "a", status: "done", result: { id: "a", outcome } }, { id: "b" }], next: "b" });
  expect(app.store.parts).toBe(0);
  const second = await page("limit=10&fields=metadata&after=b");
  expect([second.rollouts.map(({ id }) => id), second.next]).toEqual([["c", "d"], null]);
  expect(second.rollouts[0]?.result?.metadata).toEqual({ long: "x".repeat(RESULT) });
});

it("reads a part of a result only when the client has read the ones before it", async () => {
  await using app = await startLarge();
  const unread = Array.from({ length: 10 }, () => {
    const connection = app.get("/rollouts");
    connection.socket.pause();
    return connection;
  });
  /** Until the buffers of all connections are full. */
  let seen = -1;
  await expect
    .poll(
      () => {
        const isFull = app.store.parts >= unread.length && app.store.parts === seen;
        seen = app.store.parts;
        return isFull;
      },
      { interval: 200, timeout: 20_000 },
    )
    .toBe(true);
  // Before: 40 unread lists of results of 8 MB stalled the server for 20 s, and were in its memory as a whole.
  const all = (2 * RESULT) / (256 * 1024);
  expect(app.store.parts / unread.length).toBeLessThan(all / 2);
  expect(await app.get("/rollouts/a?fields=outcome").closed()).toContain('{"id":"a","outcome":{"kind":"scored"');
});
