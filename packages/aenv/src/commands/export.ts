import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { resolve } from "node:path";
import type { Trajectory } from "@aenv/contract";
import {
  type Filtered,
  type FilterOptions,
  filterTrajectories,
  openaiRow,
  preferencePairs,
  sftRow,
  toAtif,
  tokenRows,
} from "@aenv/rollout";
import { type Command, InvalidArgumentError, Option } from "commander";
import { examples } from "../options/examples.ts";
import { integer, number } from "../options/values.ts";
import { addRunsOption, getRun, type RunsOptions } from "../rollout/run-option.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";

const formats = ["sft", "openai", "preference", "tokens", "atif", "trajectories"] as const;
const MOST = Number.MAX_SAFE_INTEGER;
type Format = (typeof formats)[number];

interface Options extends RunsOptions {
  readonly format: Format;
  readonly out?: string;
  readonly minReward?: number;
  readonly dedupe?: boolean;
  readonly bestOfGroup?: number;
  readonly perTask?: number;
  readonly maxTokens?: number;
  readonly passRate?: readonly [number, number];
  readonly unscored?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Writes the trajectories of a run as training data: JSON lines, one row each. Unscored episodes are left out unless asked for.",
    )
    .argument("<run>", "the name of the run, or its folder")
    .addOption(new Option("-f, --format <format>", "the form of the rows").choices(formats).default("sft"))
    .option("-o, --out <file>", "where to write; NAME.FORMAT.jsonl if not given")
    .option("--min-reward <number>", "leave out what has a lower reward", number(-MOST, MOST))
    .option("--dedupe", "leave out trajectories with the same task and messages as an earlier one")
    .option("--best-of-group <number>", "keep the best so many samples of each task", integer(1, 1_000_000))
    .option("--per-task <number>", "keep at most so many of each task", integer(1, 1_000_000))
    .option("--max-tokens <number>", "leave out longer ones", integer(1, Number.MAX_SAFE_INTEGER))
    .option("--pass-rate <low,high>", "keep tasks whose pass rate is within these bounds, e.g. 0.1,0.9", range)
    .option("--unscored", "keep unscored episodes, with a mask, in the formats that have one")
    .option("--json", "print what was kept and left out as JSON");
  addRunsOption(command)
    .addHelpText("after", examples("aenv export NAME --min-reward 1 --dedupe", "aenv export NAME --format preference --out pairs.jsonl"))
    .action((named: string, options: Options) => exportRun(named, options, terminal));
}

async function exportRun(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const run = getRun(named, options, terminal);
  const path = resolve(terminal.cwd, options.out ?? `${run.name}.${options.format}.jsonl`);
  const file = createWriteStream(path);
  let rows = 0;
  const write = async (row: unknown) => {
    rows++;
    if (!file.write(`${JSON.stringify(row)}\n`)) await once(file, "drain");
  };
  let counts: Filtered = { kept: 0, dropped: {} };
  const kept = filterTrajectories(
    () => run.trajectories(),
    { ...filterOf(options), passReward: run.settings()?.pass_reward ?? 1 },
    (final) => {
      counts = final;
    },
  );
  if (options.format === "preference") await writePairs(kept, write);
  else for await (const one of kept) for (const row of rowsOf(one, options.format)) await write(row);
  file.end();
  await once(file, "close");
  printer.json({ file: path, format: options.format, rows, ...counts });
  const left = Object.entries(counts.dropped).map(([reason, count]) => `${count} ${reason}`);
  printer.print(`${printer.output.colors.green("✔")} ${rows} rows of ${counts.kept} trajectories in ${path}`);
  if (left.length > 0) printer.print(`  left out: ${left.join(", ")}`);
}

function rowsOf(one: Trajectory, format: Exclude<Format, "preference">): readonly unknown[] {
  switch (format) {
    case "sft":
      return present(sftRow(one));
    case "openai":
      return present(openaiRow(one));
    case "tokens":
      return tokenRows(one);
    case "atif":
      return [toAtif(one)];
    case "trajectories":
      return [one];
  }
}

/** Samples of one group may be anywhere in a run, so they are gathered first. */
async function writePairs(kept: AsyncIterable<Trajectory>, write: (row: unknown) => Promise<void>): Promise<void> {
  const groups = new Map<string, Trajectory[]>();
  for await (const one of kept) {
    const key = one.group?.id ?? one.id;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  for (const group of groups.values()) for (const row of preferencePairs(group, { minMargin: 0, perGroup: 1 })) await write(row);
}

function filterOf({ minReward, dedupe, bestOfGroup, perTask, maxTokens, passRate, unscored }: Options): FilterOptions {
  return {
    ...(minReward !== undefined && { minReward }),
    ...(bestOfGroup !== undefined && { bestOfGroup }),
    ...(perTask !== undefined && { perTask }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(passRate !== undefined && { passRate }),
    isDeduplicated: dedupe === true,
    keepsUnscored: unscored === true,
  };
}

function present(row: unknown): readonly unknown[] {
  return row === null ? [] : [row];
}

function range(text: string): [number, number] {
  const [low = Number.NaN, high = Number.NaN, ...more] = text.split(",").map((bound) => (bound.trim() === "" ? Number.NaN : Number(bound)));
  if (more.length === 0 && low >= 0 && low <= high && high <= 1) return [low, high];
  throw new InvalidArgumentError("Write two shares, the lower one first, such as 0.1,0.9.");
}
