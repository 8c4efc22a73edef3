import { expect, it, vi } from "vitest";
import { Tasks } from "./tasks.ts";

const version = { name: "shop", version: "1.0.0", contentDigest: "sha256:1" };
const tasks = () => new Tasks({ now: () => new Date(0) } as never);
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("the client has gone"))));

it("a list that is read for a client which goes away is read again for the others that wait for it", async () => {
  const lists = tasks();
  const first = new AbortController();
  const second = vi.fn(async () => [{ id: "greet" }]);
  const reading = lists.of(version, {}, () => untilAborted(first.signal), first.signal);
  const waiting = [0, 1].map(() => lists.of(version, {}, second, new AbortController().signal));
  first.abort();
  await expect(reading).rejects.toThrow("the client has gone");
  for (const list of await Promise.all(waiting)) expect(list.of()).toMatchObject([{ id: "greet" }]);
  expect(second).toHaveBeenCalledTimes(1);
});

it("a list that cannot be read is an error for all that wait for it, and is read again later", async () => {
  const lists = tasks();
  const load = vi.fn(() => Promise.reject<never>(new Error("no tasks today")));
  const signal = new AbortController().signal;
  const both = [0, 1].map(() => lists.of(version, {}, load, signal));
  for (const one of both) await expect(one).rejects.toThrow("no tasks today");
  expect(load).toHaveBeenCalledTimes(1);
  expect((await lists.of(version, {}, async () => [], signal)).of()).toEqual([]);
});

it("lists are kept as long as their prompts have 32 MiB together", async () => {
  const lists = tasks();
  const signal = new AbortController().signal;
  const read = vi.fn(async () => [{ id: "a", instruction: "x".repeat(10 * 2 ** 20) }]);
  const list = (name: string) => lists.of({ ...version, name }, {}, read, signal);
  for (const name of ["one", "two", "three"]) await list(name);
  for (const name of ["one", "two", "three"]) await list(name);
  expect(read).toHaveBeenCalledTimes(3);
  await list("four");
  await list("four");
  expect(read).toHaveBeenCalledTimes(4);
  await list("one");
  expect(read).toHaveBeenCalledTimes(5);
});
