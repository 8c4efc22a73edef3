import { expect, it } from "vitest";
import type { ContainerRecord, ContainerSpec } from "./container.ts";
import { ContainerPool, type ContainerPoolOptions } from "./pool.ts";

interface Made {
  readonly record: ContainerRecord;
  readonly image: string;
}

const specOf = (image: string) => ({ runtime: "runc" as const, files: { layers: [image], config: null }, resources: {} });

function open(options: Partial<ContainerPoolOptions<Made>> = {}) {
  const waiting = new Set<Made>();
  const pool = new ContainerPool<Made>({
    create: async ({ files }: ContainerSpec) => {
      const made = { record: {} as ContainerRecord, image: files.layers[0] ?? "" };
      waiting.add(made);
      return made;
    },
    isRunning: () => true,
    remove: async (made) => void waiting.delete(made),
    size: 1,
    total: 3,
    hasMemory: () => true,
    idleMs: 1_000,
    now: () => 0,
    ...options,
  });
  const ask = async (image: string) => {
    const taken = pool.take(specOf(image));
    if (taken !== null) waiting.delete(taken);
    await pool.fill();
    return taken !== null;
  };
  return { pool, ask, images: () => [...waiting].map(({ image }) => image).sort() };
}

it("prepares a container of an image once it is in use, and another one whenever it is taken", async () => {
  const { ask, images } = open();
  expect([await ask("a"), await ask("a"), await ask("b"), await ask("a"), await ask("b")]).toEqual([false, true, false, true, true]);
  expect(images()).toEqual(["a", "b"]);
});

it("keeps those of the images that were used last, when there are more images than it may keep", async () => {
  let time = 0;
  const { ask, images } = open({ now: () => time });
  for (const image of ["a", "b", "c", "a", "d"]) {
    time++;
    await ask(image);
  }
  expect(images()).toEqual(["a", "c", "d"]);
});

it("keeps none of an image that was not used for a while", async () => {
  let now = 0;
  const { pool, ask, images } = open({ now: () => now });
  await ask("a");
  now = 900;
  await ask("b");
  now = 1_500;
  await pool.fill();
  expect(images()).toEqual(["b"]);
  expect(await ask("a")).toBe(false);
});

it("keeps none while memory is short, and prepares them again afterwards", async () => {
  let hasMemory = true;
  const { pool, ask, images } = open({ hasMemory: () => hasMemory });
  await ask("a");
  await ask("b");
  hasMemory = false;
  await pool.fill();
  expect(images()).toEqual([]);
  expect(await ask("c")).toBe(false);
  hasMemory = true;
  await pool.fill();
  expect(images()).toEqual(["a", "b", "c"]);
});

it("removes those of a checkpoint that is forgotten, also one that is just being created", async () => {
  const creating = Promise.withResolvers<void>();
  const removed: string[] = [];
  const pool = new ContainerPool<Made>({
    create: async ({ checkpoint = "" }) => {
      if (checkpoint === "late") await creating.promise;
      return { record: {} as ContainerRecord, image: checkpoint };
    },
    isRunning: () => true,
    remove: async ({ image }) => void removed.push(image),
    size: 1,
    total: 3,
    hasMemory: () => true,
    idleMs: 1_000,
    now: () => 0,
  });
  for (const checkpoint of ["early", "late", "other"]) pool.take({ ...specOf("a"), checkpoint });
  const filled = pool.fill();
  await expect.poll(() => pool.size).toBe(2);
  const forgotten = Promise.all(["early", "late"].map((one) => pool.forget(({ checkpoint }) => checkpoint === one)));
  creating.resolve();
  await forgotten;
  expect(removed.sort()).toEqual(["early", "late"]);
  await filled;
  expect(removed.sort()).toEqual(["early", "late"]);
  expect(pool.size).toBe(1);
});

it("removes all of them when it is closed", async () => {
  const { pool, ask, images } = open();
  await ask("a");
  await ask("b");
  await pool.close();
  expect(images()).toEqual([]);
  expect(await ask("a")).toBe(false);
});
