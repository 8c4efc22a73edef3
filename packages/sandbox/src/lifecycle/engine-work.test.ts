import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Sandbox } from "../engine/engine.ts";
import { EngineWork } from "./engine-work.ts";

const { signal } = new AbortController();

it("a closed engine has cancelled its starts, has waited for its ends, and starts nothing", async () => {
  const work = new EngineWork();
  const stopped: string[] = [];
  const starting = work.start("one", signal, async (closing) => {
    await new Promise((resolve) => closing.addEventListener("abort", resolve));
    stopped.push("start");
    throw new Error("any");
  });
  const ended = Promise.withResolvers<void>();
  const ending = work.end(ended.promise);
  expect(work.isStarting("one")).toBe(true);
  const closing = work.close().then(() => stopped.push("close"));
  await expect(starting).rejects.toMatchObject({ code: "request.cancelled" });
  await setImmediate();
  expect(stopped).toEqual(["start"]);
  ended.resolve();
  await Promise.all([closing, ending]);
  expect(stopped).toEqual(["start", "close"]);
  expect(work.isStarting("one")).toBe(false);
  await expect(work.start("two", signal, async () => ({}) as Sandbox)).rejects.toMatchObject({ code: "server.draining" });
});

it("a start that fails by itself fails with its own error, and one whose signal has fired is not begun", async () => {
  const work = new EngineWork();
  await expect(work.start("one", signal, () => Promise.reject(new Error("its own")))).rejects.toThrow("its own");
  let begun = false;
  const begin = async () => {
    begun = true;
    return {} as Sandbox;
  };
  await expect(work.start("two", AbortSignal.abort(), begin)).rejects.toMatchObject({ code: "request.cancelled" });
  expect(begun).toBe(false);
});
