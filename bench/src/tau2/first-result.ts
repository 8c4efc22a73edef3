import { Pool } from "undici";
import { type Bundle, buildBundle } from "../kit/bundle.ts";
import { send } from "../load/exchange.ts";
import { projects, startPlatformServer } from "../platform/server.ts";
import { type ExpectedCall, Trainer } from "../platform/trainer.ts";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { VARIABLES } from "./data.ts";
import type { Scale } from "./scale.ts";
import { World } from "./world.ts";

/** Time from the create request of an airline instance to its first tool result, compared with a newly started process. */
export async function measureFirstResult(report: Report, { rounds, firsts, coldStarts }: Scale): Promise<void> {
  report.progress("create to first tool result of an airline instance");
  await using world = await World.open("airline");
  const callSequences = await world.query("lookups", { count: 100 });
  await using bundle = await buildBundle(projects.tau2);
  await using server = await startPlatformServer({ createsPerSecond: 1_000_000 });
  const ref = await server.publish("tau2", "shared");
  await using trainer = await Trainer.open(server, { variables: VARIABLES, callSequences });
  const contenders = {
    slot: () => trainer.query("firstResults", { ref, count: firsts, isPaced: false }),
    cold: () => coldResults(bundle, callSequences[0]?.[0] as ExpectedCall, coldStarts),
  };
  // The first instance of a host reads the data, and its code is not compiled yet.
  await contenders.slot();
  const times = await takeTurns(rounds, contenders);
  for (const { share, limit } of [
    { share: 0.5, limit: 5 },
    { share: 0.99, limit: 25 },
  ]) {
    report.add({
      name: `create to first tool result, an airline instance in a packed host, p${share * 100}`,
      value: quantile(times.slot.flat(), share),
      unit: "ms",
      beside: { what: "a fresh process of the same bundle", value: quantile(times.cold.flat(), share) },
      aim: { of: "value", is: "at most", limit },
    });
  }
}

async function coldResults(bundle: Bundle, call: ExpectedCall, count: number): Promise<readonly number[]> {
  const timesMs: number[] = [];
  for (let n = 0; n < count; n++) {
    await using sandbox = await bundle.start((url) => askOnce(url, call), VARIABLES);
    timesMs.push(sandbox.startMs);
  }
  return timesMs;
}

async function askOnce(url: string, { name, arguments: args, expect }: ExpectedCall): Promise<void> {
  const pool = new Pool(url);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const answer = await send(pool, "POST", "/mcp", body, headers);
  if (!answer.body.includes(expect)) throw new Error(`the fresh process answered ${answer.status}: ${answer.body.slice(0, 500)}`);
  await pool.close();
}
