import { MemoryEngine, type Sandbox } from "@aenv/sandbox";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { SandboxClients } from "../sandboxes/client.ts";
import { Hosts, type HostsOptions } from "./hosts.ts";
import { type ClaimSpec, Pool } from "./pool.ts";

const { signal } = new AbortController();

function openHosts(options: Partial<HostsOptions> = {}) {
  const engine = new MemoryEngine({
    start: () => (_, response) => void response.end(JSON.stringify({ success: true, data: null })),
  });
  const clients = new SandboxClients();
  const clock = { now: 0 };
  const now = () => clock.now;
  const pool = new Pool({
    engine,
    clients,
    runner: ["runner"],
    variables: {},
    serverId: "r-1",
    min: 0,
    limits: { each: 0, perOwner: 0, total: 0 },
    startsAtOnce: 2,
    refillAfterMs: 0,
    startTimeoutMs: 5_000,
    memoryMb: 64,
    standingOf: async () => "newest",
    onTrouble: () => {},
    now,
  });
  const hosts = new Hosts({ pool, maxHosts: 3, spreadAt: 4, maxEmpty: 10, isTaken: async () => false, now, ...options });
  onTestFinished(async () => {
    await pool.close();
    await clients.close();
    await engine.close();
  });
  const ids = async () => (await engine.list()).map(({ id }) => id).sort();
  return { hosts, engine, clock, ids };
}

function spec(name: string): ClaimSpec {
  return { folder: `/bundles/${name}`, digest: `sha256:${name}`, variables: {}, environment: null };
}

/** How many sit in each sandbox. */
function slotsOf(sandboxes: readonly Sandbox[]): number[] {
  const slots = new Map<string, number>();
  for (const { id } of sandboxes) slots.set(id, (slots.get(id) ?? 0) + 1);
  return [...slots.values()].sort((a, b) => a - b);
}

describe("hosts", () => {
  it("are no more than there may be, however many come at once", async () => {
    const { hosts, ids } = openHosts();
    const sandboxes = await Promise.all(Array.from({ length: 200 }, () => hosts.sit("ada", spec("shop"), signal)));
    expect(sandboxes).toHaveLength(200);
    expect((await ids()).length).toBeLessThanOrEqual(3);
  });

  it("fill up evenly, and the next is opened when one has a fair number of slots taken", async () => {
    const { hosts } = openHosts();
    const sandboxes: Sandbox[] = [];
    for (let n = 0; n < 4; n++) sandboxes.push(await hosts.sit("ada", spec("shop"), signal));
    expect(slotsOf(sandboxes)).toEqual([4]);
    for (let n = 0; n < 26; n++) sandboxes.push(await hosts.sit("ada", spec("shop"), signal));
    expect(slotsOf(sandboxes)).toEqual([10, 10, 10]);
    for (const sandbox of sandboxes.slice(0, 4)) hosts.leave(sandbox.id);
    expect((await hosts.sit("ada", spec("shop"), signal)).id).toBe(sandboxes[0]?.id);
  });

  it("never slot two owners or two bundles together", async () => {
    const { hosts } = openHosts();
    const seated = await Promise.all([
      hosts.sit("ada", spec("shop"), signal),
      hosts.sit("bob", spec("shop"), signal),
      hosts.sit("ada", spec("bank"), signal),
    ]);
    expect(slotsOf(seated)).toEqual([1, 1, 1]);
    expect((await hosts.sit("bob", spec("shop"), signal)).id).toBe(seated[1]?.id);
  });

  it("are closed when nobody has sat in them for a while, unless someone else seated somebody there", async () => {
    const taken = new Set<string>();
    const { hosts, clock, ids } = openHosts({ isTaken: async (sandboxId) => taken.has(sandboxId) });
    const sandbox = await hosts.sit("ada", spec("shop"), signal);
    clock.now += 120_000;
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandbox.id]);
    hosts.leave(sandbox.id);
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandbox.id]);
    clock.now += 60_000;
    taken.add(sandbox.id);
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandbox.id]);
    taken.clear();
    clock.now += 60_000;
    await hosts.closeIdle(60_000);
    expect([await ids(), hosts.size]).toEqual([[], 0]);
  });

  it("that are empty are no more than there may be: the longest empty are closed first", async () => {
    const { hosts, clock, ids } = openHosts({ maxEmpty: 1 });
    const names = ["shop", "bank", "farm"];
    const sandboxes: Sandbox[] = [];
    for (const name of names) sandboxes.push(await hosts.sit("ada", spec(name), signal));
    for (const { id } of sandboxes.slice(0, 2)) {
      clock.now += 10;
      hosts.leave(id);
    }
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandboxes[1]?.id, sandboxes[2]?.id].sort());
  });

  it("that have crashed are offered to nobody, also if they crash while they are looked at", async () => {
    const { hosts, engine, clock } = openHosts({
      isTaken: async (sandboxId) => {
        await engine.crash(sandboxId, "out of memory");
        throw new Error("the store is away");
      },
    });
    const first = await hosts.sit("ada", spec("shop"), signal);
    await engine.crash(first.id, "out of memory");
    await vi.waitFor(() => expect(hosts.size).toBe(0));
    const second = await hosts.sit("ada", spec("shop"), signal);
    expect(second.id).not.toBe(first.id);
    hosts.leave(second.id);
    clock.now += 60_000;
    await hosts.closeIdle(60_000);
    expect((await hosts.sit("ada", spec("shop"), signal)).id).not.toBe(second.id);
  });
});
