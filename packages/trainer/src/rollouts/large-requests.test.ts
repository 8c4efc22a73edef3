import { type RolloutRequest, rolloutRequest } from "@aenv/contract";
import { ada, MemoryRows, MemoryStore, Scheduler } from "@aenv/server/testing";
import { defaultModels, ModelPolicy, type Versioned } from "@aenv/server/trainer-services";
import { expect, it, onTestFinished } from "vitest";
import { scored } from "./fixtures/scored.ts";
import { Rollouts, type RolloutsOptions } from "./rollouts.ts";
import { keyOf, type RolloutRow, type RolloutWork, requestRows, rolloutRows } from "./row.ts";
import { StoredResults } from "./stored-results.ts";

/** Counts the characters that are read, and fails or loses changes of large requests where a test says so. */
class TestStore extends MemoryStore {
  read = 0;
  /** What the server does not live to do. */
  lost: "insert" | "remove" | null = null;

  override async get<T>(kind: string, key: string): Promise<Versioned<T> | null> {
    const row = await super.get<T>(kind, key);
    this.read += JSON.stringify(row).length;
    return row;
  }

  override async list<T>(...query: Parameters<MemoryStore["list"]>): Promise<Versioned<T>[]> {
    const rows = await super.list<T>(...query);
    this.read += JSON.stringify(rows).length;
    return rows;
  }

  override async insert(...row: Parameters<MemoryStore["insert"]>): ReturnType<MemoryStore["insert"]> {
    return this.lost === "insert" && row[0] === "rollout-request" ? "inserted" : super.insert(...row);
  }

  override async remove(...row: Parameters<MemoryStore["remove"]>): ReturnType<MemoryStore["remove"]> {
    if (this.lost === "remove" && row[0] === "rollout-request") throw new Error("the server is lost");
    return super.remove(...row);
  }
}

let clock = Date.parse("2026-01-02T00:00:00.000Z");

/** A server on a store, which plays one rollout at a time; each ends with a score when `mayEnd` is resolved. */
function openServer(rows = new MemoryRows(), mayEnd: Promise<unknown> = Promise.resolve()) {
  const store = new TestStore(rows);
  const now = () => new Date(clock);
  const played: RolloutRequest[] = [];
  const play = async (row: RolloutRow, work: RolloutWork) => {
    played.push(work.request);
    await mayEnd;
    return scored(row, work, now());
  };
  const options = {
    rows: rolloutRows(store),
    requests: requestRows(store),
    results: new StoredResults(store),
    keepMs: 3_600_000,
    maxBytes: 1e9,
    maxBytesPerOwner: 1e9,
    maxUnfinished: 100,
    maxRequestBytes: 100e6,
    hub: { resolve: async () => ({ name: "e", version: "1.0.0", bundleDigest: null, config: {} }) },
    policy: new ModelPolicy(defaultModels(false), () => []),
    player: { play },
    pools: { endThoseOf: async () => {}, close: async () => {} },
    http: { close: async () => {} },
    scheduler: new Scheduler({ rollouts: { atOnce: 1 } }),
    serverId: "s",
    isAlone: true,
    stillValid: async () => {},
    livingServers: async () => new Set(["s"]),
    now,
    onDone: () => {},
    onFailure: (error: unknown) => {
      throw error;
    },
  };
  const rollouts = new Rollouts(options as unknown as RolloutsOptions);
  onTestFinished(() => rollouts.close());
  const requests = async () => (await store.list("rollout-request", { limit: 100 })).length;
  const outcomeOf = async (id: string) => {
    const texts = (await rollouts.resultOf(await rollouts.get(id, ada)))?.texts(new Set(["outcome"]));
    const { value } = (await texts?.next()) ?? {};
    return value === undefined ? null : JSON.parse(value as string).outcome;
  };
  return { store, rollouts, played, requests, outcomeOf };
}

const requestOf = (id: string, metadataBytes: number, base_url = "http://127.0.0.1:9/v1") =>
  rolloutRequest.parse({ id, environment: "e", model: { base_url, api_key: "secret" }, metadata: { long: "x".repeat(metadataBytes) } });
const submit = ({ rollouts }: ReturnType<typeof openServer>, ...requests: RolloutRequest[]) =>
  rollouts.submit({ rollouts: requests, stream: false }, ada);

it("reads large requests only to play them: rounds, lists and sweeps read small rows", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const server = openServer(undefined, promise);
  const { store, rollouts, played } = server;
  const requests = Array.from({ length: 8 }, (_, at) => requestOf(`r${at}`, 2_000_000));
  for (const one of requests) await submit(server, one);
  await expect.poll(() => played.length).toBe(1);
  store.read = 0;
  // Before: every round read each of them as a whole. Eight of 30 MB stalled the server for 8.7 s, every three seconds.
  await rollouts.tidy();
  expect(await rollouts.list({ limit: 10 }, ada)).toHaveLength(8);
  await rollouts.sweep();
  expect(store.read).toBeLessThan(50_000);
  resolve();
  await expect.poll(() => played).toEqual(requests);
});

it("removes a large request, with its secrets, when its rollout has ended", async () => {
  const server = openServer();
  await submit(server, requestOf("a", 10_000), requestOf("small", 10));
  await expect.poll(() => server.outcomeOf("a")).toMatchObject({ kind: "scored" });
  await expect.poll(() => server.outcomeOf("small")).toMatchObject({ kind: "scored" });
  expect(await server.requests()).toBe(0);
  expect((await server.rollouts.find(keyOf("ada", "a")))?.work).toBeNull();
});

it("removes the large request of a rollout whose server was lost before it removed it", async () => {
  const rows = new MemoryRows();
  const lost = openServer(rows);
  lost.store.lost = "remove";
  await submit(lost, requestOf("a", 10_000));
  await expect.poll(() => lost.outcomeOf("a")).toMatchObject({ kind: "scored" });
  expect(await lost.requests()).toBe(1);
  const next = openServer(rows);
  await next.rollouts.tidy();
  expect(await next.requests()).toBe(0);
});

it("plays a rollout whose server was lost while it accepted it, when it is requested again", async () => {
  const rows = new MemoryRows();
  const lost = openServer(rows);
  lost.store.lost = "insert";
  const request = requestOf("a", 10_000);
  await submit(lost, request);
  await expect.poll(async () => (await lost.rollouts.get("a", ada)).state).toBe("queued");
  const next = openServer(rows);
  await next.rollouts.tidy();
  await submit(next, request);
  await expect
    .poll(async () => {
      await next.rollouts.tidy();
      return next.played;
    })
    .toEqual([request]);
});

it("ends a rollout unscored whose request was lost, if it is not requested again within a minute", async () => {
  const rows = new MemoryRows();
  const lost = openServer(rows);
  lost.store.lost = "insert";
  await submit(lost, requestOf("a", 10_000));
  clock += 61_000;
  const next = openServer(rows);
  await next.rollouts.tidy();
  await expect.poll(() => next.outcomeOf("a")).toMatchObject({ kind: "unscored", cause: "sandbox", retryable: true });
  expect(next.played).toEqual([]);
});

it("plays a row that an earlier version of the server stored, with the request inside, whatever its size", async () => {
  const server = openServer();
  const request = requestOf("a", 100_000);
  const { owner, roles: _, ...caller } = ada;
  const row = {
    id: "a",
    owner,
    run: null,
    digest: "",
    state: "queued",
    work: { request, environment: "e@1.0.0", environmentDigest: null, caller: { ...caller, roles: ["trainer"] } },
    lease: null,
    attempt: 0,
    losses: 0,
    createdAt: new Date(clock).toISOString(),
    done: null,
  };
  await server.store.insert("rollout", keyOf(owner, "a"), row, { state: "queued", owner, unfinished: owner });
  await server.rollouts.tidy();
  await expect.poll(() => server.outcomeOf("a")).toMatchObject({ kind: "scored" });
  expect(server.played).toEqual([request]);
});

it("refuses a rollout of more than four MiB, and says which, before any of its request is stored", async () => {
  const server = openServer();
  // Before: 30 MB of metadata were accepted.
  await expect(submit(server, requestOf("good", 10), requestOf("large", 5_000_000))).rejects.toMatchObject({
    code: "request.too_large",
    message: expect.stringMatching(/^rollout 'large' has 5\d{6} bytes, more than the 4194304 of one rollout/),
  });
  expect(await server.rollouts.list({ limit: 10 }, ada)).toEqual([]);
});
