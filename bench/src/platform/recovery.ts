import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Report } from "../suite.ts";
import { startPlatformServer } from "./server.ts";
import { Trainer } from "./trainer.ts";

const SETTINGS = { createsPerSecond: 1_000_000, maxInstances: 50_000 };

export interface RecoverySize {
  readonly rows: number;
  readonly live: number;
}

/** After a `kill -9`: time until the next server is ready and has adopted all running instances. */
export async function measureRecovery(report: Report, { rows, live }: RecoverySize = { rows: 20_000, live: 10_000 }): Promise<void> {
  const what = `recovery after kill -9 with ${rows.toLocaleString("en")} rows, ${live.toLocaleString("en")} of them live`;
  report.progress(what);
  const home = await mkdtemp(join(tmpdir(), "aenv-recovery-"));
  try {
    const ids = await leaveBehind(home, rows, live);
    const from = performance.now();
    await using server = await startPlatformServer(SETTINGS, home);
    const readyMs = performance.now() - from;
    await using trainer = await Trainer.open(server);
    const kept = await trainer.query("live", undefined);
    const { wrong } = await trainer.query("callEach", { ids });
    await trainer.query("end", { ids });
    report.add({ name: `${what}: ready in`, value: readyMs / 1_000, unit: "s", aim: { of: "value", is: "at most", limit: 10 } });
    const lost = (name: string, value: number) =>
      report.add({ name: `${what}: ${name}`, value, unit: "instances", aim: { of: "value", is: "at most", limit: 0 } });
    lost("lost", live - kept);
    lost("wrong answers when each is called once through the gateway", wrong);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Kills a server while this many of its instances are live; returns their ids. */
async function leaveBehind(home: string, rows: number, live: number): Promise<readonly string[]> {
  const server = await startPlatformServer(SETTINGS, home);
  try {
    await using trainer = await Trainer.open(server);
    const ref = await server.publish("ledger", "shared");
    const { ids } = await trainer.query("createBatches", { ref, count: rows, size: 500, lanes: 2 });
    await trainer.query("end", { ids: ids.slice(live) });
    await server.kill();
    return ids.slice(0, live);
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}
