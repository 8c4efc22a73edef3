import { describe, expect, it } from "vitest";
import type { Measurement } from "../row.ts";
import { measureRecovery } from "./recovery.ts";
import { type PlatformServer, startPlatformServer } from "./server.ts";
import { Trainer } from "./trainer.ts";

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("the measured platform", () => {
  it("handles all requests of the suite, and leaves no sandbox", { timeout: 120_000 }, async () => {
    let sandboxes: readonly number[];
    {
      await using server = await startPlatformServer();
      await using trainer = await Trainer.open(server);
      await visit(server, trainer);
      sandboxes = await server.sandboxes();
      expect(sandboxes.length).toBeGreaterThan(0);
      expect((await server.memory()).heapBytes).toBeGreaterThan(0);
      expect(await server.cpuUs()).toBeGreaterThan(0);
    }
    expect(sandboxes.filter(isRunning)).toEqual([]);
  });
});

it("loses no instance when the measured server is killed", { timeout: 120_000 }, async () => {
  const added: Measurement[] = [];
  await measureRecovery({ add: (one) => void added.push(one), skip: () => {}, progress: () => {} }, { rows: 20, live: 10 });
  expect(added.map(({ value, unit }) => (unit === "instances" ? value : unit))).toEqual(["s", 0, 0]);
});

async function visit(server: PlatformServer, trainer: Trainer): Promise<void> {
  const slot = await server.publish("ledger", "shared");
  const own = await server.publish("ledger", "instance");
  const shop = await server.publish("shop", "shared");
  expect(await trainer.query("firstResults", { ref: slot, count: 3, isPaced: false })).toHaveLength(3);
  expect(await trainer.query("firstResults", { ref: own, count: 1, isPaced: true })).toHaveLength(1);
  expect(await trainer.query("firstResultsAtOnce", { ref: own, count: 2 })).toHaveLength(2);

  const { ids } = await trainer.query("createBatches", { ref: slot, count: 7, size: 3, lanes: 2 });
  expect(new Set(ids).size).toBe(7);
  expect(await trainer.query("callEach", { ids })).toMatchObject({ wrong: 0 });
  // A second call with the same number gives another sum, so a wrong answer is detected.
  expect(await trainer.query("callEach", { ids })).toMatchObject({ wrong: 6 });

  const { ids: prepared } = await trainer.query("create", { ref: shop, count: 1 });
  const { ids: copies } = await trainer.query("fork", { id: prepared[0] as string, count: 2 });
  const { ids: apart } = await trainer.query("create", { ref: own, count: 1 });
  const { ids: forks } = await trainer.query("fork", { id: apart[0] as string, count: 2, isPaced: true });
  expect(await trainer.query("live", undefined)).toBe(13);
  await trainer.query("end", { ids: [...ids, ...prepared, ...copies, ...apart, ...forks] });
  expect(await trainer.query("live", undefined)).toBe(0);
}
