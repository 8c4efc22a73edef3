import type { Sandbox } from "@aenv/sandbox";
import { expect, it } from "vitest";
import { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { type WarmProgram, WarmPrograms } from "./warm-programs.ts";

function open({ canStore = true }: { canStore?: boolean } = {}) {
  let now = 0;
  let taken = 0;
  const removed: string[] = [];
  const failures: unknown[] = [];
  const sandbox = (id: string, more: Partial<Sandbox> = {}) => ({ id, ...more }) as Sandbox;
  const programs = new WarmPrograms({
    engine: {
      ...(canStore && { snapshots: { fidelities: ["files", "memory"], remove: async (id: string) => void removed.push(id) } as never }),
    },
    space: new SnapshotSpace(),
    onFailure: (_, error) => failures.push(error),
    now: () => now,
  });
  const start = async (inputs: unknown, more: Partial<WarmProgram> = {}) => {
    const own: WarmProgram = {
      environment: "shop@1.0.0",
      inputs,
      start: async () =>
        sandbox("started", {
          snapshots: { fidelities: ["memory"], take: async () => ({ id: `snapshot-${++taken}`, fidelity: "memory", bytes: 1 }) },
        }),
      copy: async (snapshot) => sandbox(`copy of ${snapshot}`),
      signal: new AbortController().signal,
    };
    return (await programs.start({ ...own, ...more })).id;
  };
  const wait = (ms: number) => {
    now += ms;
  };
  return { programs, start, removed, failures, wait };
}

it("the first program with some inputs is started and stored, and those that came meanwhile and later are copies", async () => {
  const { programs, start } = open();
  expect(await Promise.all([start("a"), start("a"), start("b")])).toEqual(["started", "copy of snapshot-1", "started"]);
  expect(await start("a")).toBe("copy of snapshot-1");
  expect(programs.copies).toBe(2);
});

it("where memory cannot be stored, all are started", async () => {
  const { start } = open({ canStore: false });
  expect([await start("a"), await start("a")]).toEqual(["started", "started"]);
});

it("after a failed start the next one is stored, and one that waited is started by itself", async () => {
  const { start } = open();
  const failing = start("a", { start: () => Promise.reject(new Error("no such program")) });
  const waiting = start("a");
  await expect(failing).rejects.toThrow("no such program");
  expect(await waiting).toBe("started");
  expect([await start("a"), await start("a")]).toEqual(["started", "copy of snapshot-1"]);
});

it("a program that cannot be stored is reported once, and started each time", async () => {
  const { start, failures } = open();
  const first = {
    start: async () => ({ id: "started", snapshots: { take: () => Promise.reject(new Error("use runsc")) } }) as unknown as Sandbox,
  };
  expect([await start("a", first), await start("a", first), await start("a", first)]).toEqual(["started", "started", "started"]);
  expect(failures).toEqual([new Error("use runsc")]);
});

it("a stored program that cannot be continued is removed, and others are started", async () => {
  const { start, removed, failures } = open();
  await start("a");
  expect(await start("a", { copy: () => Promise.reject(new Error("damaged")) })).toBe("started");
  expect(await start("a")).toBe("started");
  expect([removed, failures]).toEqual([["snapshot-1"], [new Error("damaged")]]);
});

it("a request that is cancelled while its copy starts leaves the stored program to others", async () => {
  const { start, removed, failures } = open();
  await start("a");
  const stop = new AbortController();
  const copy = async () => {
    stop.abort(new Error("not wanted any more"));
    throw new Error("the start was cancelled");
  };
  await expect(start("a", { copy, signal: stop.signal })).rejects.toThrow("not wanted any more");
  expect(await start("a")).toBe("copy of snapshot-1");
  expect([removed, failures]).toEqual([[], []]);
});

it("a close does not wait for a program that is starting, which is not stored any more", async () => {
  const { programs, start, removed, failures } = open();
  await start("a");
  const starting = Promise.withResolvers<Sandbox>();
  const started = start("b", { start: () => starting.promise });
  await programs.close();
  expect(removed).toEqual(["snapshot-1"]);
  const unused = () => Promise.reject(new Error("stored after the end"));
  starting.resolve({ id: "late", snapshots: { take: unused } } as unknown as Sandbox);
  expect(await started).toBe("late");
  expect(failures).toEqual([]);
});

it("those that nobody uses are removed, the oldest of too many, and all at the end", async () => {
  const { programs, start, removed, wait } = open();
  await start("idle");
  wait(20 * 60_000);
  for (let count = 0; count < 32; count++) await start(count);
  expect(removed).toEqual(["snapshot-1"]);
  wait(20 * 60_000);
  await start(0);
  wait(20 * 60_000);
  await programs.trim();
  expect(removed).toHaveLength(32);
  await programs.close();
  expect(new Set(removed).size).toBe(33);
});
