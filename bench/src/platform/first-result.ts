import { Pool } from "undici";
import { type Bundle, buildBundle } from "../kit/bundle.ts";
import { send } from "../load/exchange.ts";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { projects, startPlatformServer } from "./server.ts";
import { Trainer } from "./trainer.ts";

const ROUNDS = 12;
const SLOTS = 200;
const PROCESSES = 12;
const COLD_STARTS = 3;
const BURST = 16;

/** The start of an episode: from the create request to the first tool result. */
export async function measureFirstResult(report: Report): Promise<void> {
  report.progress("create to first tool result");
  await using bundle = await buildBundle(projects.ledger);
  await using server = await startPlatformServer();
  await using trainer = await Trainer.open(server);
  const slot = await server.publish("ledger", "shared");
  const own = await server.publish("ledger", "instance");

  const contenders = {
    slot: (count = SLOTS) => trainer.query("firstResults", { ref: slot, count, isPaced: false }),
    process: (count = PROCESSES) => trainer.query("firstResults", { ref: own, count, isPaced: true }),
    cold: (count = COLD_STARTS) => coldResults(bundle, count),
  };
  await contenders.slot();
  await contenders.process(4);
  const times = await takeTurns(ROUNDS, contenders);
  const burst = await trainer.query("firstResultsAtOnce", { ref: own, count: BURST });

  const cold = times.cold.flat();
  const besideCold = (share: number) => ({ what: "node main.js of the same bundle", value: quantile(cold, share) });
  const add = (what: string, timesMs: readonly number[], share: number, limit: number) =>
    report.add({
      name: `create to first tool result, ${what}, p${share * 100}`,
      value: quantile(timesMs, share),
      unit: "ms",
      beside: besideCold(share),
      aim: { of: "value", is: "at most", limit },
    });
  add("a packed slot", times.slot.flat(), 0.5, 5);
  add("a packed slot", times.slot.flat(), 0.99, 25);
  add("a process from the warm pool", times.process.flat(), 0.5, 15);
  add("a process from the warm pool", times.process.flat(), 0.99, 50);
  report.add({
    name: `create to first tool result, ${BURST} processes at once from a pool that holds fewer, p50`,
    value: quantile(burst, 0.5),
    unit: "ms",
    beside: besideCold(0.5),
  });
}

async function coldResults(bundle: Bundle, count: number): Promise<readonly number[]> {
  const timesMs: number[] = [];
  for (let n = 0; n < count; n++) {
    await using sandbox = await bundle.start(askOnce);
    timesMs.push(sandbox.startMs);
  }
  return timesMs;
}

async function askOnce(url: string): Promise<void> {
  const pool = new Pool(url);
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"n":7}}}';
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const answer = await send(pool, "POST", "/mcp", body, headers);
  if (!answer.body.includes('"sum is 7"')) throw new Error(`the cold start answered ${answer.status}: ${answer.body.slice(0, 500)}`);
  await pool.close();
}
