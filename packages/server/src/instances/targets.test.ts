import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../stores/memory/store.ts";
import { type InstanceRow, instanceRows } from "./row.ts";
import { Targets } from "./targets.ts";

const slot = { sandboxId: "b", address: { kind: "unix", path: "/s" }, prefix: "/env-instance/i", isOwnSandbox: true };
const row = { id: "i", agentKey: "k", owner: "ada", environment: { name: "shop", version: "1.0.0" }, group: null, server: "r" };
const running = { ...row, status: "Running", slot } as unknown as InstanceRow;
const ended = { ...row, status: "Terminated", slot: null, reason: "deleted" } as unknown as InstanceRow;

describe("targets", () => {
  it("are found in memory after their first use, by id and by agent key", async () => {
    const rows = instanceRows(new MemoryStore());
    const targets = new Targets(rows);
    expect([targets.peek("i"), await targets.find("i"), await targets.findByAgentKey("k")]).toEqual([
      null,
      { kind: "unknown" },
      { kind: "unknown" },
    ]);
    await rows.insert("i", running);
    expect(await targets.findByAgentKey("k")).toMatchObject({ kind: "ready", sandboxId: "b" });
    expect(targets.peek("i")).toMatchObject({ kind: "ready", prefix: "/env-instance/i" });
    targets.note(ended);
    expect(targets.peek("i")).toBeNull();
  });

  it("are read from the store again when their row is too old", async () => {
    const rows = instanceRows(new MemoryStore());
    const targets = new Targets(rows, 1);
    await rows.insert("i", running);
    await targets.find("i");
    await rows.update("i", () => ended);
    await setTimeout(5);
    expect(targets.peek("i")).toBeNull();
    expect(await targets.findByAgentKey("k")).toMatchObject({ kind: "gone" });
    await rows.remove("i");
    expect(await targets.find("i")).toEqual({ kind: "unknown" });
  });

  it("that were read as ended are not called any more, however new their row in memory is", async () => {
    const targets = new Targets(instanceRows(new MemoryStore()), 60_000);
    targets.note(running);
    targets.noteRead({ ...running, agentKey: "of an earlier one" });
    expect(targets.peek("i")).toMatchObject({ kind: "ready" });
    targets.noteRead(ended);
    expect(targets.peek("i")).toBeNull();
  });

  // Before: 100,000 were kept, with 1.2 KB and more each; 3,018 of them after 12,800 rollouts, of which a tenth fail and end their instance.
  it("are in memory only while their instance is live", async () => {
    const rows = instanceRows(new MemoryStore());
    const targets = new Targets(rows);
    const many = Array.from({ length: 100 }, (_, n) => ({ ...running, id: `i${n}`, agentKey: `k${n}` }));
    for (const one of many) targets.note(one);
    expect(targets.size).toBe(100);
    for (const { id, agentKey } of many) targets.note({ ...ended, id, agentKey });
    expect(targets.size).toBe(0);
    await rows.insert("i", ended);
    expect(await targets.find("i")).toMatchObject({ kind: "gone" });
    expect(await targets.findByAgentKey("k")).toMatchObject({ kind: "gone" });
    expect(targets.size).toBe(0);
  });

  it("that change during a read are returned in their new state", async () => {
    const rows = instanceRows(new MemoryStore());
    const targets = new Targets(rows);
    await rows.insert("i", running);
    const looking = [targets.find("i"), targets.find("i")];
    targets.note(ended);
    for (const found of await Promise.all(looking)) expect(found).toMatchObject({ kind: "gone" });
    expect(targets.peek("i")).toBeNull();
    await rows.update("i", () => ended);
    expect(await targets.find("i")).toMatchObject({ kind: "gone" });
  });
});
