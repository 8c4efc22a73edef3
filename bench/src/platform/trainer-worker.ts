import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "undici";
import { type Headers, send } from "../load/exchange.ts";
import { answerParent } from "../processes/answer.ts";
import type { ExpectedCall, Queries } from "./trainer.ts";

// The requests of a trainer, in its own process, so that the client does not use the server's CPU time.
const LANES = 64;
const HEADERS: Headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const JSON_ONLY: Headers = { "content-type": "application/json" };

let control: Pool;
let data: Pool;
let variables: Readonly<Record<string, string>>;
let callSequences: readonly (readonly ExpectedCall[])[];

answerParent({ open, firstResults, firstResultsAtOnce, create, createBatches, fork, callEach, runEach, end, live });

/** Opens the connections before the measurement. */
async function open({ controlUrl, dataUrl, ...more }: Queries["open"]): Promise<void> {
  variables = more.variables ?? {};
  callSequences = more.callSequences ?? [];
  control = new Pool(controlUrl, { connections: LANES, pipelining: 1 });
  data = new Pool(dataUrl, { connections: LANES, pipelining: 1 });
  const knocks = Array.from({ length: LANES }, () => [send(control, "GET", "/health", null, {}), send(data, "GET", "/health", null, {})]);
  await Promise.all(knocks.flat());
}

/** Times from the create request to the first tool result, one instance after another; with a pool, whenever it is full. */
async function firstResults({ ref, count, isPaced }: Queries["firstResults"]): Promise<number[]> {
  const timesMs: number[] = [];
  for (let n = 0; n < count; n++) {
    if (isPaced) await untilPoolIsFull();
    const { ms, id } = await firstResult(ref, n);
    timesMs.push(ms);
    await endOne(id);
  }
  return timesMs;
}

/** All at once, more than the pool has. */
async function firstResultsAtOnce({ ref, count }: Queries["firstResultsAtOnce"]): Promise<number[]> {
  await untilPoolIsFull();
  const results = await Promise.all(Array.from({ length: count }, (_, n) => firstResult(ref, n)));
  await end({ ids: results.map(({ id }) => id) });
  return results.map(({ ms }) => ms);
}

async function firstResult(ref: string, n: number): Promise<{ ms: number; id: string }> {
  const from = performance.now();
  const id = await createOne(ref);
  await callOne(id, n);
  return { ms: performance.now() - from, id };
}

/** Instances are created one after another. */
async function create({ ref, count }: Queries["create"]): Promise<Made> {
  return timed(async () => {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) ids.push(await createOne(ref));
    return ids;
  });
}

/** One concurrent request per lane, each for a batch. */
async function createBatches({ ref, count, size, lanes }: Queries["createBatches"]): Promise<Made> {
  return timed(async () => {
    const ids: string[] = [];
    await each(lanes, Math.ceil(count / size), async (n) => {
      const wanted = Math.min(size, count - n * size);
      const { items } = (await request("POST", "/env-instance/batch", {
        envName: ref,
        count: wanted,
        environment_variables: variables,
      })) as {
        items: Item[];
      };
      const made = await Promise.all(
        items.flatMap((item) => (item.success && item.data.status !== "Failed" ? untilRunning(item.data) : [])),
      );
      if (made.length !== wanted)
        throw new Error(`only ${made.length} of ${wanted} started: ${items.find((item) => !item.success)?.message}`);
      ids.push(...made);
    });
    return ids;
  });
}

async function fork({ id, count, isPaced }: Queries["fork"]): Promise<Made> {
  if (isPaced) await untilPoolIsFull();
  return timed(async () => {
    const copies = (await request("POST", `/env-instance/${id}/fork`, { count })) as { id: string; status: string }[];
    const ids = copies.filter(({ status }) => status === "Running").map((copy) => copy.id);
    if (ids.length !== count) throw new Error(`of ${count} forks only ${ids.length} run`);
    return ids;
  });
}

/** Calls each instance once. The number makes each answer unique, so a lost or mixed-up instance is detected. */
async function callEach({ ids }: Queries["callEach"]): Promise<{ ms: number; wrong: number }> {
  let wrong = 0;
  const from = performance.now();
  await each(LANES, ids.length, async (n) => {
    if ((await problemOf(ids[n] as string, firstCall(n))) !== null) wrong++;
  });
  return { ms: performance.now() - from, wrong };
}

/** Runs all calls of each instance, this many instances at a time. */
async function runEach({ ids, lanes }: Queries["runEach"]): Promise<{ ms: number; wrong: number; calls: number }> {
  let wrong = 0;
  let calls = 0;
  const from = performance.now();
  await each(lanes, ids.length, async (n) => {
    for (const call of callSequences[n % callSequences.length] ?? []) {
      if ((await problemOf(ids[n] as string, call)) !== null) wrong++;
      calls++;
    }
  });
  return { ms: performance.now() - from, wrong, calls };
}

async function end({ ids }: Queries["end"]): Promise<number> {
  const from = performance.now();
  await each(LANES, ids.length, (n) => endOne(ids[n] as string));
  return performance.now() - from;
}

/** Number of instances that the platform reports. */
async function live(): Promise<number> {
  return (await gauges())("aenv_instances_live");
}

interface Made {
  readonly ms: number;
  readonly ids: string[];
}

type Item =
  | { readonly success: true; readonly data: { readonly id: string; readonly status: string }; readonly message?: undefined }
  | { readonly success: false; readonly message: string };

/** A request answers after a while also if its instance still starts. */
async function untilRunning({ id, status }: { readonly id: string; readonly status: string }): Promise<string> {
  for (let now = status; now !== "Running"; await pause(100)) {
    if (now !== "Creating") throw new Error(`${id} is ${now}`);
    now = ((await request("GET", `/env-instance/${id}`)) as { status: string }).status;
  }
  return id;
}

async function createOne(ref: string | null): Promise<string> {
  const body = { ...(ref !== null && { envName: ref }), environment_variables: variables };
  const { id, status } = (await request("POST", "/env-instance", body)) as {
    id: string;
    status: string;
  };
  if (status !== "Running") throw new Error(`${id} is ${status}`);
  return id;
}

async function callOne(id: string, n: number): Promise<void> {
  const problem = await problemOf(id, firstCall(n));
  if (problem !== null) throw new Error(problem);
}

async function endOne(id: string): Promise<void> {
  await request("DELETE", `/env-instance/${id}`);
}

async function request(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<unknown> {
  const answer = await send(control, method, path, body === undefined ? null : JSON.stringify(body), body === undefined ? {} : JSON_ONLY);
  if (answer.status !== 200) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body.slice(0, 500)}`);
  return JSON.parse(answer.body).data;
}

function firstCall(n: number): ExpectedCall {
  return callSequences[n % callSequences.length]?.[0] ?? { name: "add", arguments: { n }, expect: `"sum is ${n}"` };
}

/** Calls an instance; returns the problem of the answer, or null. */
async function problemOf(id: string, { name, arguments: args, expect }: ExpectedCall): Promise<string | null> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  const answer = await send(data, "POST", `/env-instance/${id}/mcp`, body, HEADERS);
  if (answer.status === 200 && answer.body.includes(expect)) return null;
  return `${id} answered ${name} with ${answer.status} and without '${expect}': ${answer.body.slice(0, 500)}`;
}

/** Waits until the pool is full, so that starts from a warm pool are measured. */
async function untilPoolIsFull(): Promise<void> {
  for (let tries = 0; tries < 1_200; tries++) {
    const gauge = await gauges();
    const kinds = ["blank", "prepared"];
    if (kinds.every((kind) => gauge(`aenv_pool_${kind}_ready`) >= gauge(`aenv_pool_${kind}_target`))) return;
    await pause(50);
  }
  throw new Error("the pool was not full within 60 s");
}

async function gauges(): Promise<(name: string) => number> {
  const { body } = await send(control, "GET", "/metrics", null, {});
  return (name) => Number(new RegExp(`^${name} (.+)$`, "m").exec(body)?.[1]);
}

/** Runs the work for 0 to count - 1, this many at a time. */
async function each(lanes: number, count: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const take = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, take));
}

async function timed(make: () => Promise<string[]>): Promise<Made> {
  const from = performance.now();
  const ids = await make();
  return { ms: performance.now() - from, ids };
}
