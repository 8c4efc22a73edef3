import { join } from "node:path";
import type { Trajectory } from "@aenv/contract";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { compressJournal, readJournal } from "./journal.ts";
import { readTrajectories, rewriteTrajectories, TrajectoryWriter } from "./trajectories.ts";

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

describe("stored trajectories", () => {
  let tree: Tree;
  let path: string;
  beforeEach(() => {
    tree = temporaryTree();
    path = join(tree.path, "trajectories.jsonl");
  });
  afterEach(() => tree[Symbol.dispose]());

  async function all(): Promise<Trajectory[]> {
    return collect(readTrajectories(path));
  }

  it("are read as they were written, and what they share is stored once", async () => {
    const written = Array.from({ length: 5 }, (_, n) => newTrajectory({ id: `t${n}` }));
    await using writer = await TrajectoryWriter.open(path);
    for (const one of written) await writer.add(one);
    expect(await all()).toEqual(written);
    const types = (await collect(readJournal(path))).map(({ record }) => record.type);
    expect(types).toEqual(["shared", "shared", ...Array.from({ length: 5 }, () => "trajectory")]);
  });

  it("are told at the next opening, which writes nothing shared again", async () => {
    const first = await TrajectoryWriter.open(path);
    await first.add(newTrajectory({ id: "t0" }));
    await first.close();
    const ids: unknown[] = [];
    const second = await TrajectoryWriter.open(path, ({ id }) => ids.push(id));
    await second.add(newTrajectory({ id: "t1" }));
    await second.close();
    expect(ids).toEqual(["t0"]);
    expect((await all()).map(({ id }) => id)).toEqual(["t0", "t1"]);
    expect((await collect(readJournal(path))).filter(({ record }) => record.type === "shared")).toHaveLength(2);
  });

  it("store what forks have in common once, and are read whole", async () => {
    const parent = { id: "p", messages: 2, steps: 1, turns: 0 };
    const forks = ["a", "b"].map((id) => newTrajectory({ id, parent }));
    const written = [...forks, newTrajectory({ id: "c", parent: { ...parent, id: "q" } })];
    await using writer = await TrajectoryWriter.open(path);
    for (const one of written) await writer.add(one);
    expect(await all()).toEqual(written);
    const records = (await collect(readJournal(path))).map(({ record }) => record);
    expect(records.filter(({ type }) => type === "prefix").map(({ id }) => id)).toEqual(["p", "q"]);
    const values = records.flatMap(({ type, value }) => (type === "trajectory" ? [value as Trajectory] : []));
    expect(values.map(({ messages, steps }) => [messages.length, steps.length])).toEqual([2, 2, 2].map((count) => [count, 0]));
  });

  it("of forks that go on with their common part in other words are read as they were written, also after a restart", async () => {
    const parent = { id: "p", messages: 2, steps: 1, turns: 0 };
    const [a, b, c] = ["a", "b", "c"].map((id) => newTrajectory({ id, parent }));
    if (a === undefined || b === undefined || c === undefined) throw new Error("three trajectories were made");
    const other = { ...b, messages: b.messages.map((message, at) => (at === 1 ? { ...message, content: "shorter" } : message)) };
    await using writer = await TrajectoryWriter.open(path);
    await writer.add(a);
    await writer.add(other);
    await writer.close();
    await using again = await TrajectoryWriter.open(path);
    await again.add({ ...other, id: "b2" });
    await again.add(c);
    expect(await all()).toEqual([a, other, { ...other, id: "b2" }, c]);
    expect((await collect(readJournal(path))).filter(({ record }) => record.type === "prefix")).toHaveLength(3);
  });

  it("of forks that end at the same time are each read with their own beginning", async () => {
    const parent = { id: "p", messages: 2, steps: 1, turns: 0 };
    const written = ["a", "b", "c"].map((id) => {
      const one = newTrajectory({ id, parent });
      return { ...one, messages: one.messages.map((message, at) => (at === 1 ? { ...message, content: `as ${id} saw it` } : message)) };
    });
    await using writer = await TrajectoryWriter.open(path);
    await Promise.all(written.map((one) => writer.add(one)));
    expect(await all()).toEqual(written);
  });

  it("can be taken out of a journal that is compressed, and others added to it", async () => {
    const writer = await TrajectoryWriter.open(path);
    for (const id of ["a", "b", "c"]) await writer.add(newTrajectory({ id }));
    await writer.close();
    await compressJournal(path);
    await rewriteTrajectories(path, ({ id }) => id !== "b");
    const again = await TrajectoryWriter.open(path);
    await again.add(newTrajectory({ id: "d" }));
    await again.close();
    expect((await all()).map(({ id }) => id)).toEqual(["a", "c", "d"]);
    await compressJournal(path);
    expect((await all()).map(({ id }) => id)).toEqual(["a", "c", "d"]);
  });

  it("refuse a line of another version, with the reason", async () => {
    await using writer = await TrajectoryWriter.open(path);
    await writer.add({ ...newTrajectory(), format: "aenv.trajectory.v9" } as unknown as Trajectory);
    await expect(all()).rejects.toMatchObject({ code: "store.damaged", message: expect.stringContaining("format") });
  });
});
