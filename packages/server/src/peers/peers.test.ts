import { spawn } from "node:child_process";
import { once } from "node:events";
import { identityOf, openProcessTable, type ProcessIdentity } from "@aenv/sandbox";
import { describe, expect, it, onTestFinished } from "vitest";
import { Collection } from "../stores/collection.ts";
import { MemoryStore } from "../stores/memory/store.ts";
import { ownIdentity } from "./own-identity.ts";
import { type PeerRow, Peers } from "./peers.ts";

const processes = openProcessTable();
const SELF = ownIdentity(processes);
const GONE: ProcessIdentity = { pid: 1, start: "0.gone" };

function openPeers() {
  const rows = new Collection<PeerRow>(new MemoryStore(), "server", () => ({}));
  const clock = { now: 0 };
  const join = async (id: string, location = "here", process = SELF, isAlone = false, machine = location) => {
    const now = () => new Date(clock.now);
    const peers = new Peers({ id, location, machine, process, processes, rows, now, isAlone, leaseMs: 10_000 });
    await peers.heartbeat();
    return peers;
  };
  return { rows, clock, join };
}

const idsOf = ({ dead }: { dead: readonly PeerRow[] }) => dead.map(({ id }) => id);

describe("peers", () => {
  it("at one location check each other's processes and need no heartbeats", async () => {
    const { clock, join } = openPeers();
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    const one = await join("one");
    await join("two", "here", identityOf(processes, child.pid as number) ?? GONE);
    clock.now += 3_600_000;
    expect(idsOf(await one.claimDeadServers())).toEqual([]);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(idsOf(await one.claimDeadServers())).toEqual(["two"]);
  });

  it("at another location are dead when their lease is over", async () => {
    const { clock, join } = openPeers();
    const one = await join("one");
    const two = await join("two", "there");
    for (let at = 0; at < 9; at += 3) {
      expect(idsOf(await one.claimDeadServers())).toEqual([]);
      clock.now += 3_000;
    }
    await two.heartbeat();
    for (let at = 0; at < 12; at += 3) {
      expect(idsOf(await one.claimDeadServers())).toEqual([]);
      clock.now += 3_000;
    }
    expect(idsOf(await one.claimDeadServers())).toEqual(["two"]);
  });

  it("at one location on two machines, as pods are, go by their leases and adopt from each other", async () => {
    const { join } = openPeers();
    const one = await join("one", "cluster", SELF, false, "pod-1");
    // Process 1 of its own pod.
    const two = await join("two", "cluster", GONE, false, "pod-2");
    expect(idsOf(await one.claimDeadServers())).toEqual([]);
    expect(await two.leave()).toBe(true);
    const { dead } = await one.claimDeadServers();
    await one.markAdopted(dead[0] as PeerRow, new Set());
    expect(one.ids).toEqual(["one", "two"]);
  });

  it("that have not read the rows for a while do not consider the others dead", async () => {
    const { clock, join } = openPeers();
    const one = await join("one");
    await join("two", "there");
    await one.claimDeadServers();
    clock.now += 60_000;
    expect(idsOf(await one.claimDeadServers())).toEqual([]);
  });

  it("leave dead servers of another location to the living ones there", async () => {
    const { clock, join } = openPeers();
    const [one, near] = [await join("one"), await join("near", "there")];
    await join("two", "there", GONE);
    for (let at = 0; at < 15; at += 3) {
      expect(idsOf(await one.claimDeadServers())).toEqual([]);
      await near.heartbeat();
      clock.now += 3_000;
    }
    expect(idsOf(await near.claimDeadServers())).toEqual(["two"]);
  });

  it("are adopted by one server, and by another only if that one dies too", async () => {
    const { rows, join } = openPeers();
    const [one, two] = [await join("one"), await join("two")];
    await join("dead", "here", GONE);
    const claims = await Promise.all([one.claimDeadServers(), two.claimDeadServers()]);
    expect(claims.flatMap(idsOf)).toEqual(["dead"]);
    const [winner, loser] = idsOf(claims[0]).length === 1 ? [one, two] : [two, one];
    expect(idsOf(await winner.claimDeadServers())).toEqual(["dead"]);
    expect((await loser.others()).ids).toEqual(new Set([winner.id, "dead"]));
    await rows.update(winner.id, (row) => ({ ...row, process: GONE }));
    expect(idsOf(await loser.claimDeadServers()).sort()).toEqual(["dead", winner.id].sort());
  });

  it("keep the ids of adopted servers whose sandboxes they manage, and only those", async () => {
    const { rows, join } = openPeers();
    await join("first", "here", GONE);
    const second = await join("second");
    for (const dead of (await second.claimDeadServers()).dead) await second.markAdopted(dead, new Set());
    expect(second.ids).toEqual(["second", "first"]);
    await rows.update("second", (row) => ({ ...row, process: GONE, adopted: [...row.adopted, "older"] }));
    const third = await join("third");
    const claim = await third.claimDeadServers();
    expect(claim.ids).toEqual(new Set(["second", "first", "older"]));
    for (const dead of claim.dead) await third.markAdopted(dead, new Set(["first"]));
    expect(third.ids).toEqual(["third", "second", "first"]);
    expect((await rows.find("second")) ?? (await rows.find("first"))).toBeNull();
  });

  it("that leave are adopted at once, and learn whether another server stays", async () => {
    const { rows, join } = openPeers();
    const [one, two] = [await join("one"), await join("two")];
    expect(await one.leave()).toBe(true);
    expect(idsOf(await two.claimDeadServers())).toEqual(["one"]);
    expect(await two.leave()).toBe(false);
    await two.remove();
    expect(await rows.find("two")).toBeNull();
  });

  it("are all dead if the store is used by one server only; a lost row is written again", async () => {
    const { rows, join } = openPeers();
    await join("one");
    const two = await join("two", "here", SELF, true);
    const { dead } = await two.claimDeadServers();
    expect(dead.map(({ id }) => id)).toEqual(["one"]);
    for (const row of dead) await two.markAdopted(row, new Set());
    await rows.remove("two");
    await two.heartbeat();
    expect((await rows.find("two"))?.value).toMatchObject({ adopted: ["one"], adoptedBy: null });
  });
});
