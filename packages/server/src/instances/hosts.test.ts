import { type Box, MemoryEngine } from "@aenv/sandbox";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BoxClients } from "./box-client.ts";
import { Hosts, type HostsOptions } from "./hosts.ts";
import { type ClaimSpec, Pool } from "./pool.ts";

const { signal } = new AbortController();

function openHosts(options: Partial<HostsOptions> = {}) {
  const engine = new MemoryEngine({
    start: () => (_, response) => void response.end(JSON.stringify({ success: true, data: null })),
  });
  const clients = new BoxClients();
  const clock = { now: 0 };
  const now = () => clock.now;
  const pool = new Pool({
    engine,
    clients,
    runner: ["runner"],
    variables: {},
    replica: "r-1",
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

/** How many sit in each box. */
function seatsOf(boxes: readonly Box[]): number[] {
  const seats = new Map<string, number>();
  for (const { id } of boxes) seats.set(id, (seats.get(id) ?? 0) + 1);
  return [...seats.values()].sort((a, b) => a - b);
}

describe("hosts", () => {
  it("are no more than there may be, however many come at once", async () => {
    const { hosts, ids } = openHosts();
    const boxes = await Promise.all(Array.from({ length: 200 }, () => hosts.sit("ada", spec("shop"), signal)));
    expect(boxes).toHaveLength(200);
    expect((await ids()).length).toBeLessThanOrEqual(3);
  });

  it("fill up evenly, and the next is opened when one has a fair number of seats taken", async () => {
    const { hosts } = openHosts();
    const boxes: Box[] = [];
    for (let n = 0; n < 4; n++) boxes.push(await hosts.sit("ada", spec("shop"), signal));
    expect(seatsOf(boxes)).toEqual([4]);
    for (let n = 0; n < 26; n++) boxes.push(await hosts.sit("ada", spec("shop"), signal));
    expect(seatsOf(boxes)).toEqual([10, 10, 10]);
    for (const box of boxes.slice(0, 4)) hosts.leave(box.id);
    expect((await hosts.sit("ada", spec("shop"), signal)).id).toBe(boxes[0]?.id);
  });

  it("never seat two owners or two bundles together", async () => {
    const { hosts } = openHosts();
    const seated = await Promise.all([
      hosts.sit("ada", spec("shop"), signal),
      hosts.sit("bob", spec("shop"), signal),
      hosts.sit("ada", spec("bank"), signal),
    ]);
    expect(seatsOf(seated)).toEqual([1, 1, 1]);
    expect((await hosts.sit("bob", spec("shop"), signal)).id).toBe(seated[1]?.id);
  });

  it("are closed when nobody has sat in them for a while, unless someone else seated somebody there", async () => {
    const taken = new Set<string>();
    const { hosts, clock, ids } = openHosts({ isTaken: async (boxId) => taken.has(boxId) });
    const box = await hosts.sit("ada", spec("shop"), signal);
    clock.now += 120_000;
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([box.id]);
    hosts.leave(box.id);
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([box.id]);
    clock.now += 60_000;
    taken.add(box.id);
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([box.id]);
    taken.clear();
    clock.now += 60_000;
    await hosts.closeIdle(60_000);
    expect([await ids(), hosts.size]).toEqual([[], 0]);
  });

  it("that are empty are no more than there may be: the longest empty are closed first", async () => {
    const { hosts, clock, ids } = openHosts({ maxEmpty: 1 });
    const names = ["shop", "bank", "farm"];
    const boxes: Box[] = [];
    for (const name of names) boxes.push(await hosts.sit("ada", spec(name), signal));
    for (const { id } of boxes.slice(0, 2)) {
      clock.now += 10;
      hosts.leave(id);
    }
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([boxes[1]?.id, boxes[2]?.id].sort());
  });

  it("that have crashed are offered to nobody, also if they crash while they are looked at", async () => {
    const { hosts, engine, clock } = openHosts({
      isTaken: async (boxId) => {
        await engine.crash(boxId, "out of memory");
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
