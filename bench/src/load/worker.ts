import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "undici";
import { answerParent } from "../processes/answer.ts";
import { type Answered, type Headers, send } from "./exchange.ts";
import type { Limits, LoadJob, LoadResult, Step } from "./job.ts";

/** A step with its placeholders located, so that filling them is cheap. */
interface Template {
  readonly method: Step["method"];
  readonly path: readonly string[];
  readonly body: readonly string[] | null;
  readonly expect: readonly string[];
}

interface Lane {
  readonly headers: Headers;
}

interface Prepared {
  readonly pool: Pool;
  readonly prefix: string;
  readonly templates: readonly Template[];
  readonly lanes: readonly Lane[];
  readonly everyMs: number;
}

const HEADERS: Headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

let prepared: Prepared | undefined;
let turnsTaken = 0;

answerParent({ prepare, run, finish });

/** Opens every lane's connection and session before the measurement. */
async function prepare(job: LoadJob): Promise<void> {
  const { url, prefix = "" } = job;
  const pool = new Pool(url, { connections: job.lanes, pipelining: 1 });
  const open = () => (job.hasSession === true ? openSession(pool, prefix) : knock(pool));
  const lanes = await Promise.all(Array.from({ length: job.lanes }, open));
  prepared = { pool, prefix, templates: job.steps.map((step) => toTemplate(step, prefix)), lanes, everyMs: job.everyMs ?? 0 };
}

async function run(limits: Limits): Promise<LoadResult> {
  if (prepared === undefined) throw new Error("run comes after prepare");
  const { pool, templates, lanes, everyMs } = prepared;
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + limits.ms;
  let begun = 0;
  const take = async ({ headers }: Lane) => {
    for (let now = startedAt; now < endsAt && begun < limits.turns; ) {
      const waitMs = startedAt + begun++ * everyMs - performance.now();
      if (waitMs > 0) await pause(waitMs);
      const turn = String(turnsTaken++);
      const from = performance.now();
      for (const template of templates) await step(pool, template, turn, headers);
      now = performance.now();
      latenciesMs.push(now - from);
    }
  };
  await Promise.all(lanes.map(take));
  return { turns: latenciesMs.length, elapsedMs: performance.now() - startedAt, latenciesMs };
}

async function finish(): Promise<void> {
  if (prepared === undefined) return;
  const { pool, prefix, lanes } = prepared;
  prepared = undefined;
  for (const { headers } of lanes) if ("mcp-session-id" in headers) await send(pool, "DELETE", `${prefix}/mcp`, null, headers);
  await pool.close();
}

async function step(pool: Pool, { method, path, body, expect }: Template, turn: string, headers: Headers): Promise<void> {
  const answered = await send(pool, method, path.join(turn), body === null ? null : body.join(turn), headers);
  const expected = expect.join(turn);
  if (answered.status !== 200 || !answered.body.includes(expected)) {
    throw new Error(`${method} ${path.join(turn)} answered ${answered.status} without '${expected}': ${answered.body.slice(0, 500)}`);
  }
}

async function knock(pool: Pool): Promise<Lane> {
  await send(pool, "GET", "/health", null, HEADERS);
  return { headers: HEADERS };
}

async function openSession(pool: Pool, prefix: string): Promise<Lane> {
  const path = `${prefix}/mcp`;
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "bench", version: "0.1.0" } };
  const hello = await send(pool, "POST", path, JSON.stringify({ jsonrpc: "2.0", id: "hello", method: "initialize", params }), HEADERS);
  const headers = { ...HEADERS, "mcp-session-id": sessionId(hello), "mcp-protocol-version": params.protocolVersion };
  await send(pool, "POST", path, JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }), headers);
  return { headers };
}

function sessionId({ status, headers, body }: Answered): string {
  const id = headers["mcp-session-id"];
  if (typeof id !== "string") throw new Error(`initialize was answered with ${status} and no session: ${body.slice(0, 500)}`);
  return id;
}

function toTemplate({ method, path, body, expect }: Step, prefix: string): Template {
  return { method, path: `${prefix}${path}`.split("{n}"), body: body?.split("{n}") ?? null, expect: expect.split("{n}") };
}
