import { createHash } from "node:crypto";
import { getLogParser } from "@aenv/swebench/core";
import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { type GeneratedLog, generateLogs } from "./logs.ts";
import { findReference, type ParserTime } from "./reference.ts";

export interface ParserScale {
  readonly rounds: number;
  /** Characters of each log. */
  readonly length: number;
}

/** Parsers that most instances use, each with a row of its own. */
const SHOWN = ["pytest", "pytest_v2", "django", "sympy", "jest", "gotest", "cargo", "maven", "phpunit", "googletest"] as const;

/** MB of logs per second of CPU time, beside the reference if this machine has it. */
export async function measureParsers(report: Report, { rounds, length }: ParserScale): Promise<void> {
  report.progress("log parsers of SWE-bench");
  const logs = generateLogs(length);
  const reference = await findReference();
  if (typeof reference === "string") report.skip("log parsers beside the Python reference", reference);
  const ours = new Map(logs.map((log) => [log.parser, fastest(rounds, () => parse(log))]));
  const theirs = new Map((typeof reference === "string" ? [] : await reference.parse(logs)).map((time) => [time.parser, time]));
  for (const { parser, digest } of theirs.values()) {
    if (ours.get(parser)?.digest !== digest) throw new Error(`${parser} found other results than the reference`);
  }
  const rates = logs.map(({ parser, log }) => {
    const megabytes = Buffer.byteLength(log) / 1_000_000;
    const rate = (time: ParserTime | undefined): number | null => (time === undefined ? null : megabytes / time.seconds);
    return { parser, ours: rate(ours.get(parser)) ?? 0, theirs: rate(theirs.get(parser)) };
  });
  const add = (name: string, shown: typeof rates): void => {
    const value = median(shown.map((one) => one.ours));
    const baselines = shown.flatMap((one) => one.theirs ?? []);
    if (baselines.length === 0) report.add({ name, value, unit: "MB/s" });
    else {
      const beside = { what: "the Python reference", value: median(baselines) };
      report.add({ name, value, unit: "MB/s", beside, aim: { of: "ratio", is: "at least", limit: 5 } });
    }
  };
  for (const name of SHOWN) {
    add(
      `parser ${name}`,
      rates.filter(({ parser }) => parser === `parse_log_${name}`),
    );
  }
  add(`median of all ${rates.length} parsers`, rates);
  const slowest = rates.toSorted((a, b) => a.ours / (a.theirs ?? 1) - b.ours / (b.theirs ?? 1))[0];
  if (slowest !== undefined) add(`slowest parser, ${slowest.parser.slice("parse_log_".length)}`, [slowest]);
}

function parse({ parser, log, instanceId, version }: GeneratedLog): ParserTime {
  const run = getLogParser(parser);
  const start = process.cpuUsage();
  const results = run(log, { instanceId, version });
  const { user, system } = process.cpuUsage(start);
  const hash = createHash("sha256");
  for (const [name, status] of results) hash.update(`${name}\0${status}\n`);
  return { parser, seconds: Math.max(1, user + system) / 1_000_000, digest: hash.digest("hex") };
}

function fastest(rounds: number, run: () => ParserTime): ParserTime {
  let best = run();
  for (let i = 1; i < rounds; i++) {
    const next = run();
    if (next.seconds < best.seconds) best = next;
  }
  return best;
}
