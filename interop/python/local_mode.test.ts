import { setTimeout as pause } from "node:timers/promises";
import { type EnvironmentDefinition, type Served, serve } from "@aenv/kit";
import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { freeLoopback, ORIGINAL_PORT, useFromPython } from "./original.ts";
import { twin } from "./twin.ts";

/** The twin's tools, one that logs while it runs, and one that is slow. */
const environment: EnvironmentDefinition = {
  ...(twin as EnvironmentDefinition),
  tools: [
    ...((twin as EnvironmentDefinition).tools ?? []),
    {
      name: "talk",
      run: async (_, { log, progress }) => {
        log("info", "at work");
        progress(1, 2, "half");
        await pause(20);
        progress(2, 2);
        log("warning", { left: 0 });
        return "talked";
      },
    },
    {
      name: "slow",
      input: z.object({ seconds: z.number() }),
      run: async (input, { signal }) => {
        await pause((input as { seconds: number }).seconds * 1_000, undefined, { signal });
        return "slept";
      },
    },
  ],
};

const text = (line: string) => ({ content: [{ type: "text", text: line }], is_error: false });

describeNeeding("python", "the original Python SDK in local mode, unchanged", () => {
  const address = freeLoopback();
  const silentAddress = freeLoopback();
  const open: Served[] = [];

  beforeAll(async () => {
    open.push(await serve(environment, { name: "twin", version: "1.0.0", host: address, port: ORIGINAL_PORT, pingMs: 250 }));
    open.push(await serve(environment, { name: "twin", version: "1.0.0", host: silentAddress, port: ORIGINAL_PORT, pingMs: 60_000 }));
  });

  afterAll(async () => {
    for (const served of open) await served.close();
  });

  it("lists and calls tools, functions and rewards", { timeout: 60_000 }, async () => {
    const { shared } = (await useFromPython(address, ["shared"])) as { shared: Record<string, unknown> };
    expect(shared.tools).toMatchObject([
      { name: "twin@1.0.0/get_weather", description: "Weather of a city.", inputSchema: { required: ["city"] } },
      { name: "twin@1.0.0/greet", inputSchema: { properties: { greeting: { default: "Hello" } }, required: ["name"] } },
      { name: "twin@1.0.0/forecast" },
      { name: "twin@1.0.0/temperatures" },
      { name: "twin@1.0.0/nothing" },
      { name: "twin@1.0.0/picture" },
      { name: "twin@1.0.0/fail" },
      { name: "twin@1.0.0/talk" },
      { name: "twin@1.0.0/slow" },
    ]);
    expect(shared).toMatchObject({
      object: text('{"city":"Beijing","temperature":"20","wind":null}'),
      text: text("Hello, Ada!"),
      default_replaced: text("Hi, Ada!"),
      shaped: text('{"city":"Rome","days":3}'),
      prefixed: text("[20,21,19]"),
      nothing: { content: [], is_error: false },
      picture: { content: [{ type: "image", data: btoa("hi") }], is_error: false },
      error: { content: [{ type: "text", text: "no wind" }], is_error: true },
      invalid: { is_error: true, content: [{ text: expect.stringContaining("days: ") }] },
      missing: { is_error: true, content: [{ text: expect.stringContaining("name: ") }] },
      functions: { total: 4, functions: [{ name: "get_weather_func" }, { name: "explode" }], reward: [{ name: "is_good_weather" }] },
      function: { city: "Rome", temperature: "20" },
      function_error: { raised: "EnvironmentError", message: expect.stringContaining("Server error: boom") },
      function_unknown: { raised: "EnvironmentError", message: expect.stringContaining("404") },
      good: true,
      bad: false,
      reward_error: { raised: "EnvironmentError", message: expect.stringContaining("city: ") },
    });
  });

  it("finds it healthy, calls many tools at once, releases it and opens it again", { timeout: 60_000 }, async () => {
    const { life } = await useFromPython(address, ["life"]);
    expect(life).toEqual({
      health: { success: true, data: expect.objectContaining({ status: "success", details: expect.objectContaining({ tool_count: 9 }) }) },
      info: expect.objectContaining({ name: "twin@1.0.0", instance_id: "test", status: "Running" }),
      at_once: Array.from({ length: 16 }, (_, n) => `city-${n}`),
      unknown: { raised: "ToolError", message: expect.stringContaining("Tool unheard_of not found") },
      after_unknown: text("Hello, Ada!"),
      released: true,
      reopened: text("Hello, Eve!"),
    });
  });

  it("receives a tool's log and progress", { timeout: 60_000 }, async () => {
    const { talk } = await useFromPython(address, ["talk"]);
    expect(talk).toEqual({
      result: text("talked"),
      heard: [
        "Received INFO from server: at work",
        "Progress: 1.0/2.0 (50.0%) - half",
        "Progress: 2.0/2.0 (100.0%)",
        "Received WARNING from server: {'left': 0}",
      ],
    });
  });

  it("gets the result of a call that is longer than its read timeout, but only with pings", {
    timeout: 90_000,
  }, async () => {
    const { long_call: long } = await useFromPython(address, ["long_call"], silentAddress);
    expect(long).toMatchObject({
      with_pings: { answer: text("slept") },
      without_pings: { answer: { raised: "ToolError", message: expect.stringContaining("Timed out") } },
    });
    expect((long as { with_pings: { seconds: number } }).with_pings.seconds).toBeGreaterThan(4.9);
  });
});
