import { describeNeeding } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Measurement } from "../row.ts";
import type { Report } from "../suite.ts";
import { measureDirect, measureGateway } from "./calls.ts";
import { dataLacks } from "./data.ts";
import { measureFirstResult } from "./first-result.ts";
import { measureHashing } from "./hashing.ts";
import { measureInstances } from "./instances.ts";
import type { Scale } from "./scale.ts";

const SMALL: Scale = { rounds: 1, directMs: 20, episodes: 6, firsts: 3, coldStarts: 1, worlds: 10, copies: 1, many: 12, writes: 3 };

/** The rows of the suite's parts, by name. */
async function measured(...parts: readonly ((report: Report, scale: Scale) => Promise<void>)[]) {
  const rows = new Map<string, Measurement>();
  const leftOut: string[] = [];
  const report: Report = {
    add: (measurement) => void rows.set(measurement.name, measurement),
    skip: (what) => void leftOut.push(what),
    progress: () => {},
  };
  for (const part of parts) await part(report, SMALL);
  return { rows, leftOut };
}

describe("the suite of tau2", () => {
  it("names the missing data, or null", () => {
    expect(dataLacks() ?? "TAU2_DATA_DIR").toContain("TAU2_DATA_DIR");
  });
});

describeNeeding("tau2-data", "the suite of tau2 with the benchmark's data", () => {
  it("measures worlds and hashes, and the hashes equal those of the whole dump", { timeout: 120_000 }, async () => {
    const { rows } = await measured(measureDirect, measureHashing);
    expect([...rows.keys()]).toEqual(expect.arrayContaining([expect.stringContaining("golden actions of telecom")]));
    for (const { value } of rows.values()) expect(value).toBeGreaterThan(0);
  });

  it("creates, calls and ends instances on a platform, and every answer is right", { timeout: 240_000 }, async () => {
    const { rows } = await measured(measureFirstResult, measureInstances, measureGateway);
    expect(rows.get("12 live airline instances")?.value).toBe(12);
    expect(rows.get("12 live airline instances: wrong answers when each is called once through the gateway")?.value).toBe(0);
    expect(rows.get("12 live airline instances: left after each was ended")?.value).toBe(0);
    expect(rows.get("golden actions of airline over MCP through the gateway, concurrency 64")?.beside?.value).toBeGreaterThan(0);
  });
});
