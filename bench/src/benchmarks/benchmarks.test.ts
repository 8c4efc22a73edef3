import { logParsers } from "@aenv/swebench/core";
import { describeNeeding } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Measurement } from "../row.ts";
import { generateLogs } from "./logs.ts";
import { measureParsers } from "./parsers.ts";
import { findReference } from "./reference.ts";
import { measureTasks } from "./tasks.ts";

describe("the suite of benchmarks", () => {
  it("has a log with results for every parser", () => {
    const logs = generateLogs(2_000);
    expect(new Set(logs.map(({ parser }) => logParsers.get(parser)))).toEqual(new Set(logParsers.values()));
    for (const { parser, log, instanceId, version } of logs)
      expect(logParsers.get(parser)?.(log, { instanceId, version }).size, parser).toBeGreaterThan(0);
  });

  it("measures the parsers, also without the reference", async () => {
    const rows: Measurement[] = [];
    const report = { add: (row: Measurement) => void rows.push(row), skip: () => {}, progress: () => {} };
    await measureParsers(report, { rounds: 1, length: 2_000 });
    expect(rows.map(({ name }) => name)).toContain("median of all 44 parsers");
    for (const { value } of rows) expect(value).toBeGreaterThan(0);
  });

  it("says why there is no reference", async () => {
    expect(await findReference("")).toContain("AENV_SWEBENCH_PYTHON names no Python");
    expect(await findReference("/nowhere/python")).toContain("cannot load swebench");
  });
});

describeNeeding("runc", "tasks on sandboxes", () =>
  describeNeeding("docker", "and in containers of docker", () => {
    it("are played and measured, and every reward is right", { timeout: 300_000 }, async () => {
      const rows: Measurement[] = [];
      const report = { add: (row: Measurement) => void rows.push(row), skip: () => {}, progress: () => {} };
      await measureTasks(report, { tasks: 2, rounds: 1, atOnce: 3 });
      expect(rows.map(({ name }) => name)).toContain("3 tasks at once, all solved, until the last is scored");
      for (const { value } of rows) expect(value).toBeGreaterThan(0);
    });
  }),
);
