import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { Collection } from "../stores/collection.ts";
import { MemoryStore } from "../stores/memory/store.ts";
import { type ReplicaRow, Replicas } from "./peers.ts";
import { identityOf, ownIdentity } from "./process-identity.ts";

function openReplicas() {
  const rows = new Collection<ReplicaRow>(new MemoryStore(), "replica", () => ({}));
  const clock = { now: 0 };
  const join = async (id: string, place = "here", process = ownIdentity(), isAlone = false) => {
    const replica = new Replicas({ id, place, process, rows, now: () => new Date(clock.now), isAlone, silentMs: 10_000 });
    await replica.beat();
    return replica;
  };
  return { rows, clock, join };
}

const idsOf = ({ dead }: { dead: readonly ReplicaRow[] }) => dead.map(({ id }) => id);

describe("replicas", () => {
  it("at one place know each other by their processes, however silent they are", async () => {
    const { clock, join } = openReplicas();
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    const one = await join("one");
    await join("two", "here", identityOf(child.pid as number) ?? "");
    clock.now += 3_600_000;
    expect(idsOf(await one.claimDead())).toEqual([]);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(idsOf(await one.claimDead())).toEqual(["two"]);
  });

  it("elsewhere are dead when they have been silent for long enough", async () => {
    const { clock, join } = openReplicas();
    const one = await join("one");
    const two = await join("two", "there");
    for (let at = 0; at < 9; at += 3) {
      expect(idsOf(await one.claimDead())).toEqual([]);
      clock.now += 3_000;
    }
    await two.beat();
    for (let at = 0; at < 12; at += 3) {
      expect(idsOf(await one.claimDead())).toEqual([]);
      clock.now += 3_000;
    }
    expect(idsOf(await one.claimDead())).toEqual(["two"]);
  });

  it("that could not listen for a while do not take the others for dead", async () => {
    const { clock, join } = openReplicas();
    const one = await join("one");
    await join("two", "there");
    await one.claimDead();
    clock.now += 60_000;
    expect(idsOf(await one.claimDead())).toEqual([]);
  });

  it("leave the dead of another place to those who are there", async () => {
    const { clock, join } = openReplicas();
    const [one, near] = [await join("one"), await join("near", "there")];
    await join("two", "there", "1 0 gone");
    for (let at = 0; at < 15; at += 3) {
      expect(idsOf(await one.claimDead())).toEqual([]);
      await near.beat();
      clock.now += 3_000;
    }
    expect(idsOf(await near.claimDead())).toEqual(["two"]);
  });

  it("have one heir, and another only if that one dies too", async () => {
    const { rows, join } = openReplicas();
    const [one, two] = [await join("one"), await join("two")];
    await join("dead", "here", "1 0 gone");
    const claims = await Promise.all([one.claimDead(), two.claimDead()]);
    expect(claims.flatMap(idsOf)).toEqual(["dead"]);
    const [winner, loser] = idsOf(claims[0]).length === 1 ? [one, two] : [two, one];
    expect(idsOf(await winner.claimDead())).toEqual(["dead"]);
    expect((await loser.hands()).others).toEqual(new Set([winner.id, "dead"]));
    await rows.update(winner.id, (row) => ({ ...row, process: "1 0 gone" }));
    expect(idsOf(await loser.claimDead()).sort()).toEqual(["dead", winner.id].sort());
  });

  it("go on under the names of those whose sandboxes they keep, and only those", async () => {
    const { rows, join } = openReplicas();
    await join("first", "here", "1 0 gone");
    const second = await join("second");
    for (const dead of (await second.claimDead()).dead) await second.inherit(dead, new Set());
    expect(second.names).toEqual(["second", "first"]);
    await rows.update("second", (row) => ({ ...row, process: "1 0 gone", heirOf: [...row.heirOf, "older"] }));
    const third = await join("third");
    const claim = await third.claimDead();
    expect(claim.names).toEqual(new Set(["second", "first", "older"]));
    for (const dead of claim.dead) await third.inherit(dead, new Set(["first"]));
    expect(third.names).toEqual(["third", "second", "first"]);
    expect((await rows.find("second")) ?? (await rows.find("first"))).toBeNull();
  });

  it("that leave are followed at once, and know whether anyone stays", async () => {
    const { rows, join } = openReplicas();
    const [one, two] = [await join("one"), await join("two")];
    expect(await one.leave()).toBe(true);
    expect(idsOf(await two.claimDead())).toEqual(["one"]);
    expect(await two.leave()).toBe(false);
    await two.forget();
    expect(await rows.find("two")).toBeNull();
  });

  it("are all dead to one that has the store to itself, and rows that were lost come back", async () => {
    const { rows, join } = openReplicas();
    await join("one");
    const two = await join("two", "here", ownIdentity(), true);
    const { dead } = await two.claimDead();
    expect(dead.map(({ id }) => id)).toEqual(["one"]);
    for (const row of dead) await two.inherit(row, new Set());
    await rows.remove("two");
    await two.beat();
    expect((await rows.find("two"))?.value).toMatchObject({ heirOf: ["one"], heir: null });
  });
});
