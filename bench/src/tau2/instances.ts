import { existsSync } from "node:fs";
import { type PlatformServer, startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { startServer } from "../processes/server.ts";
import { foreignResidentBytes } from "../processes/usage.ts";
import type { Report } from "../suite.ts";
import { VARIABLES } from "./data.ts";
import type { Scale } from "./scale.ts";
import { World } from "./world.ts";

/** What an airline instance costs over the first, and thousands of them at once. */
export async function measureInstances(report: Report, scale: Scale): Promise<void> {
  await using world = await World.open("airline");
  const copyBytes = await world.query("copyBytes", { count: scale.copies });
  await measureOne(report, world, copyBytes, scale);
  await measureHost(report, world, copyBytes, scale);
  await measureMany(report, world, scale);
}

async function measureMany(report: Report, world: World, { many }: Scale): Promise<void> {
  const live = `${many.toLocaleString("en")} live airline instances`;
  report.progress(live);
  await using server = await startPlatformServer({ createsPerSecond: 1_000_000 });
  const ref = await server.publish("tau2", "shared");
  await using trainer = await Trainer.open(server, { variables: VARIABLES, callSequences: await world.query("lookups", { count: 500 }) });
  const make = (count: number) => trainer.query("createBatches", { ref, count, size: 250, lanes: 2 });
  // Enough that every host is open and has read the data: only additional memory is counted.
  const first = await make(Math.min(many, 200));
  await trainer.query("callEach", first);
  await trainer.query("end", first);

  const before = await hostBytes(server);
  const { ids, ms: createMs } = await make(many);
  const alive = await trainer.query("live", undefined);
  const { ms: callMs, wrong } = await trainer.query("callEach", { ids });
  const full = await hostBytes(server);
  const endMs = await trainer.query("end", { ids });
  const left = await trainer.query("live", undefined);

  const none = { of: "value", is: "at most", limit: 0 } as const;
  report.add({ name: live, value: alive, unit: "instances", aim: { of: "value", is: "at least", limit: many } });
  report.add({ name: `${live}: wrong answers when each is called once through the gateway`, value: wrong, unit: "instances", aim: none });
  report.add({ name: `${live}: left after each was ended`, value: left, unit: "instances", aim: none });
  const rate = (what: string, ms: number, unit: string) => report.add({ name: `${live}: ${what}`, value: (many * 1_000) / ms, unit });
  rate("creates over the API, in batches of 250", createMs, "instances/s");
  rate("first calls through the gateway at concurrency 64", callMs, "calls/s");
  rate("ends over the API at concurrency 64", endMs, "instances/s");
  if (before === null || full === null) {
    report.skip("resident memory of hosts", "it is read from /proc, which only Linux has");
    return;
  }
  report.add({
    name: `${live}: the hosts' resident memory`,
    value: full / 2 ** 20,
    unit: "MiB",
    beside: { what: "without them", value: before / 2 ** 20 },
  });
}

/** Memory that a live instance adds to its host after its first call. */
async function measureHost(report: Report, world: World, copyBytes: number, { many }: Scale): Promise<void> {
  report.progress("what an airline instance adds to its host");
  await using host = await startServer(new URL("./servers/host.ts", import.meta.url), [JSON.stringify(VARIABLES)], ["--expose-gc"]);
  const callSequences = await world.query("lookups", { count: 500 });
  await using trainer = await Trainer.open({ controlUrl: host.url, dataUrl: host.url }, { variables: VARIABLES, callSequences });
  const fill = async (count: number) => {
    const { ids } = await trainer.query("create", { ref: null, count });
    const { wrong } = await trainer.query("callEach", { ids });
    if (wrong > 0) throw new Error(`${wrong} of ${count} answers were wrong`);
    return ids;
  };
  // Warm-up: data that is read and code that is compiled once is not counted.
  await trainer.query("end", { ids: await fill(Math.min(many, 200)) });
  const before = await host.memory();
  await fill(many);
  const full = await host.memory();
  report.add({
    name: `heap of a host for each of ${many.toLocaleString("en")} airline instances over the first`,
    value: (full.heapBytes - before.heapBytes) / many / 1024,
    unit: "KiB",
    beside: { what: "a copy of the database", value: copyBytes / 1024 },
    aim: { of: "ratio", is: "at most", limit: 0.01 },
  });
  report.add({
    name: `resident memory of a host with ${many.toLocaleString("en")} airline instances`,
    value: full.residentBytes / 2 ** 20,
    unit: "MiB",
    beside: { what: "with one", value: before.residentBytes / 2 ** 20 },
  });
}

/** Called directly, without HTTP: how long an instance takes to create, and how much memory it holds when its task is done. */
async function measureOne(report: Report, world: World, copyBytes: number, { worlds, copies }: Scale): Promise<void> {
  report.progress("one airline world beside a copy of the database");
  await world.query("creates", { count: worlds });
  report.add({
    name: "a fresh airline world",
    value: await world.query("creates", { count: worlds }),
    unit: "us",
    beside: { what: "structuredClone of the database", value: await world.query("copies", { count: copies }) },
    aim: { of: "ratio", is: "at most", limit: 0.01 },
  });
  report.add({
    name: "heap of an airline world whose golden actions are done",
    value: (await world.query("held", { count: worlds })) / 1024,
    unit: "KiB",
    beside: { what: "a copy of the database", value: copyBytes / 1024 },
    aim: { of: "ratio", is: "at most", limit: 0.01 },
  });
}

async function hostBytes(server: PlatformServer): Promise<number | null> {
  if (!existsSync("/proc/self/status")) return null;
  const hosts = await Promise.all((await server.sandboxes()).map(foreignResidentBytes));
  return hosts.reduce((sum, one) => sum + one, 0);
}
