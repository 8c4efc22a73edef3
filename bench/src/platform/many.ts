import { existsSync } from "node:fs";
import { foreignResidentBytes } from "../processes/usage.ts";
import { takeTurns } from "../rounds.ts";
import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { type PlatformServer, startPlatformServer } from "./server.ts";
import { type Made, Trainer } from "./trainer.ts";

/** Raises the default limits per owner, which are lower than this suite needs. */
const SETTINGS = { createsPerSecond: 1_000_000, maxInstances: 50_000 };
const MANY = 20_000;
const BATCH_ROUNDS = 11;
const FORK_ROUNDS = 11;
const FORKS = 32;
const OWN_FORK_ROUNDS = 5;

/** Many instances at once: in a batch, as forks of one, and as many as one machine should hold. */
export async function measureMany(report: Report): Promise<void> {
  await measureBatchAndFork(report);
  await measureOwnForks(report);
  await measureThousands(report);
}

async function measureBatchAndFork(report: Report): Promise<void> {
  report.progress(`a batch of 100, and fork x ${FORKS}`);
  await using server = await startPlatformServer(SETTINGS);
  await using trainer = await Trainer.open(server);
  const ledger = await server.publish("ledger", "shared");
  const shop = await server.publish("shop", "shared");
  const { ids } = await trainer.query("create", { ref: shop, count: 1 });
  const [prepared = ""] = ids;
  const timed = async (making: Promise<Made>) => {
    const made = await making;
    await trainer.query("end", { ids: made.ids });
    return made.ms;
  };

  const batches = {
    batch: () => timed(trainer.query("createBatches", { ref: ledger, count: 100, size: 100, lanes: 1 })),
    singles: () => timed(trainer.query("create", { ref: ledger, count: 100 })),
  };
  for (const warmUp of Object.values(batches)) await warmUp();
  const batchMs = await takeTurns(BATCH_ROUNDS, batches);
  report.add({
    name: "a batch of 100 packed slots, in all",
    value: median(batchMs.batch),
    unit: "ms",
    beside: { what: "100 creates one after another", value: median(batchMs.singles) },
    aim: { of: "value", is: "at most", limit: 300 },
  });

  const forks = {
    fork: () => timed(trainer.query("fork", { id: prepared, count: FORKS })),
    creates: () => timed(trainer.query("create", { ref: shop, count: FORKS })),
  };
  for (const warmUp of Object.values(forks)) await warmUp();
  const forkMs = await takeTurns(FORK_ROUNDS, forks);
  report.add({
    name: `fork x ${FORKS} of a prepared environment (1,000 orders) over the API, in all`,
    value: median(forkMs.fork),
    unit: "ms",
    beside: { what: `${FORKS} creates that set the same up`, value: median(forkMs.creates) },
    aim: { of: "value", is: "at most", limit: 200 },
  });
}

/** Forks with a process each, from the pool of processes that have loaded the environment. */
async function measureOwnForks(report: Report): Promise<void> {
  report.progress(`fork x ${FORKS}, each with a process of its own`);
  await using server = await startPlatformServer(SETTINGS);
  await using trainer = await Trainer.open(server);
  const shop = await server.publish("shop", "instance");
  const { ids } = await trainer.query("create", { ref: shop, count: 1 });
  const [parent = ""] = ids;
  const fork = async (isPaced: boolean) => {
    const made = await trainer.query("fork", { id: parent, count: FORKS, isPaced });
    await trainer.query("end", { ids: made.ids });
    return made.ms;
  };
  // The first fork finds few waiting processes; after it the pool has grown.
  const firstMs = await fork(false);
  const timesMs: number[] = [];
  for (let n = 0; n < OWN_FORK_ROUNDS; n++) timesMs.push(await fork(true));
  report.add({
    name: `fork x ${FORKS} of a prepared environment (1,000 orders), each with a process of its own, in all`,
    value: median(timesMs),
    unit: "ms",
    beside: { what: "the first, before any process waits for it", value: firstMs },
    aim: { of: "value", is: "at most", limit: 1_000 },
  });
}

async function measureThousands(report: Report): Promise<void> {
  const many = `${MANY.toLocaleString("en")} live packed instances`;
  report.progress(many);
  await using server = await startPlatformServer(SETTINGS);
  await using trainer = await Trainer.open(server);
  const ref = await server.publish("ledger", "shared");
  const make = (count: number) => trainer.query("createBatches", { ref, count, size: 500, lanes: 2 });
  // Hosts are opened and code is compiled before, so that this memory is not counted.
  const first = await make(1_000);
  await trainer.query("callEach", first);
  await trainer.query("end", first);

  const before = await usedBy(server);
  const { ids, ms: createMs } = await make(MANY);
  const live = await trainer.query("live", undefined);
  const { ms: callMs, wrong } = await trainer.query("callEach", { ids });
  const full = await usedBy(server);
  const endMs = await trainer.query("end", { ids });
  const left = await trainer.query("live", undefined);

  const lost = (name: string, value: number) =>
    report.add({ name, value, unit: "instances", aim: { of: "value", is: "at most", limit: 0 } });
  report.add({ name: many, value: live, unit: "instances", aim: { of: "value", is: "at least", limit: MANY } });
  lost(`${many}: wrong answers when each is called once through the gateway`, wrong);
  lost(`${many}: left after each was ended`, left);
  const rate = (what: string, ms: number, unit: string) => report.add({ name: `${many}: ${what}`, value: (MANY * 1_000) / ms, unit });
  rate("creates over the API, in batches of 500", createMs, "instances/s");
  rate("first calls through the gateway at concurrency 64", callMs, "calls/s");
  rate("ends over the API at concurrency 64", endMs, "instances/s");
  report.add({ name: `${many}: created, called and ended, in all`, value: (createMs + callMs + endMs) / 1_000, unit: "s" });
  report.add({
    name: `${many}: the server's heap for each`,
    value: (full.serverHeapBytes - before.serverHeapBytes) / MANY / 1024,
    unit: "KiB",
  });
  if (full.hostBytes === null || before.hostBytes === null) {
    report.skip("resident memory of hosts", "it is read from /proc, which only Linux has");
    return;
  }
  report.add({
    name: `${many}: the hosts' resident memory for each`,
    value: (full.hostBytes - before.hostBytes) / MANY / 1024,
    unit: "KiB",
    beside: { what: "the server's", value: (full.serverBytes - before.serverBytes) / MANY / 1024 },
  });
}

async function usedBy(server: PlatformServer): Promise<{ serverHeapBytes: number; serverBytes: number; hostBytes: number | null }> {
  const { heapBytes, residentBytes } = await server.memory();
  const hosts = existsSync("/proc/self/status") ? await Promise.all((await server.sandboxes()).map(foreignResidentBytes)) : null;
  return { serverHeapBytes: heapBytes, serverBytes: residentBytes, hostBytes: hosts?.reduce((sum, one) => sum + one, 0) ?? null };
}
