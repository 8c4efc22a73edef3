import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { row } from "./row.ts";
import { suites } from "./suites.ts";

const command = fileURLToPath(new URL("./fixtures/fake-bench.ts", import.meta.url));
let results: string;

beforeEach(async () => {
  results = await mkdtemp(join(tmpdir(), "aenv-bench-"));
});
afterEach(() => rm(results, { recursive: true }));

function bench(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [command, results, ...args], (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

describe("npm run bench", () => {
  it("prints one JSON array of rows and nothing else on stdout with --json", async () => {
    const { code, stdout, stderr } = await bench("--only", "fast", "--json");
    expect(code).toBe(0);
    expect(row.array().parse(JSON.parse(stdout))).toEqual([
      { suite: "fast", name: "a", value: 2, unit: "ms", beside: "b: 1 ms", ratio: 2, aim: "ratio <= 1.5", holds: false },
      { suite: "fast", name: "c", value: 3, unit: "calls/s", beside: null, ratio: null, aim: null, holds: true },
    ]);
    expect(stderr).toContain("fast: measuring nothing");
  });

  it("prints a table otherwise", async () => {
    const { stdout } = await bench("--only", "fast");
    expect(stdout).toMatch(/fast.*a.*2 ms.*b: 1 ms.*2 x.*ratio <= 1\.5.*missed/);
  });

  it("rejects an unknown suite with exit code 2 and lists the existing ones", async () => {
    const { code, stdout, stderr } = await bench("--only", "fast,slow", "--json");
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr: "no suite is called 'slow'; the suites are: fast, absent, broken\n",
    });
  });

  it("rejects an unknown option with exit code 2", async () => {
    const { code, stderr } = await bench("--onyl", "fast");
    expect(code).toBe(2);
    expect(stderr).toContain("--onyl");
  });

  it("names the skipped suites and parts, with the reasons", async () => {
    const { stderr } = await bench("--only", "fast,absent");
    expect(stderr).toContain("left out: fast, d: there is no d here");
    expect(stderr).toContain("left out: absent: no moon tonight");
  });

  it("writes results with date and machine after a run of all suites, but none of a suite that failed", async () => {
    const { code, stdout, stderr } = await bench("--json");
    expect(code).toBe(1);
    expect(stderr).toContain("failed: broken: Error: the server fell over");
    expect(JSON.parse(stdout).map((one: { name: string }) => one.name)).toEqual(["a", "c", "e"]);
    expect(await readdir(results)).toEqual(["fast.json"]);
    const saved = JSON.parse(await readFile(join(results, "fast.json"), "utf8"));
    expect(saved).toMatchObject({
      suite: "fast",
      machine: { node: process.version, loadAverage: expect.any(Number) },
      leftOut: ["fast, d: there is no d here"],
    });
    expect(Date.parse(saved.date)).not.toBeNaN();
    expect(row.array().parse(saved.rows)).toHaveLength(2);
  });

  it("keeps the saved results when only some suites run, unless --save is set", async () => {
    await bench("--only", "fast");
    expect(await readdir(results)).toEqual([]);
    await bench("--only", "fast", "--save");
    expect(await readdir(results)).toEqual(["fast.json"]);
  });

  it("has suites of different names", () => {
    expect(new Set(suites.map((suite) => suite.name)).size).toBe(suites.length);
  });
});
