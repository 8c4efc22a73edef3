import { createWriteStream, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  datasetInfo,
  type ExportCounts,
  type ExportFormatName,
  exportFormats,
  exportRows,
  type FilterOptions,
  type Row,
  writeParquet,
} from "@aenv/rollout";
import { type Command, InvalidArgumentError, Option } from "commander";
import { examples } from "../options/examples.ts";
import { integer, number } from "../options/values.ts";
import { addRunsOption, getRun, type RunsOptions } from "../rollout/run-option.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";

const formats = Object.keys(exportFormats) as ExportFormatName[];
const MOST = Number.MAX_SAFE_INTEGER;

interface Options extends RunsOptions {
  readonly format: ExportFormatName;
  readonly out?: string;
  readonly minReward?: number;
  readonly maxReward?: number;
  readonly dedupe?: boolean;
  readonly bestOfGroup?: number;
  readonly perTask?: number;
  readonly maxTokens?: number;
  readonly maxMessages?: number;
  readonly passRate?: readonly [number, number];
  readonly unscored?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Writes the trajectories of a run as training data: JSON lines, or Parquet for 'verl' and 'table'. Unscored episodes are left out unless asked for.",
    )
    .argument("<run>", "the name of the run, or its folder")
    .addOption(new Option("-f, --format <format>", "the form of the rows").choices(formats).default("sft"))
    .option("-o, --out <file>", "where to write; NAME.FORMAT.jsonl or NAME.FORMAT.parquet if not given")
    .option("--min-reward <number>", "leave out what has a lower reward", number(-MOST, MOST))
    .option("--max-reward <number>", "leave out what has a higher reward", number(-MOST, MOST))
    .option("--dedupe", "leave out trajectories with the same task and messages as an earlier one")
    .option(
      "--best-of-group <number>",
      "keep the best so many samples of each task, of those that other filters keep",
      integer(1, 1_000_000),
    )
    .option("--per-task <number>", "keep at most so many of each task", integer(1, 1_000_000))
    .option("--max-tokens <number>", "leave out episodes with a longer prompt and answer, or with one of unknown length", integer(1, MOST))
    .option("--max-messages <number>", "leave out episodes with more messages", integer(1, MOST))
    .option("--pass-rate <low,high>", "keep tasks whose pass rate is within these bounds, e.g. 0.1,0.9", range)
    .option("--unscored", "keep unscored episodes in the formats that mark them: tokens, table, atif, trajectories, and files of tasks")
    .option("--json", "print what was kept and left out as JSON");
  addRunsOption(command)
    .addHelpText(
      "after",
      examples(
        "aenv export NAME --min-reward 1 --dedupe",
        "aenv export NAME --format preference --out pairs.jsonl",
        "aenv export NAME --format verl --pass-rate 0.1,0.9",
      ),
    )
    .action((named: string, options: Options) => exportRun(named, options, terminal));
}

async function exportRun(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const run = getRun(named, options, terminal);
  const { columns } = exportFormats[options.format];
  const path = resolve(terminal.cwd, options.out ?? `${run.name}.${options.format}.${columns === null ? "jsonl" : "parquet"}`);
  let counts: ExportCounts = { kept: 0, rows: 0, dropped: {}, skipped: {} };
  const filter = { ...filterOf(options), passReward: run.settings()?.pass_reward ?? 1 };
  const rows = exportRows(
    () => run.trajectories(),
    options.format,
    filter,
    (final) => {
      counts = final;
    },
  );
  await writeWhole(path, (file) =>
    columns === null ? pipeline(Readable.from(linesOf(rows)), createWriteStream(file)) : writeParquet(file, columns, rows),
  );
  if (options.format === "llama-factory") addDatasetInfo(path);
  printer.json({ file: path, format: options.format, ...counts });
  printer.print(`${printer.output.colors.green("✔")} ${counts.rows} rows of ${counts.kept} trajectories in ${path}`);
  for (const [label, reasons] of [
    ["left out", counts.dropped],
    ["without a row", counts.skipped],
  ] as const) {
    const listed = Object.entries(reasons).map(([reason, count]) => `${count} ${reason}`);
    if (listed.length > 0) printer.print(`  ${label}: ${listed.join(", ")}`);
  }
}

async function* linesOf(rows: AsyncIterable<Row>): AsyncGenerator<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`;
}

/** A file that is there is complete: an export that fails leaves what was there before. */
async function writeWhole(path: string, write: (file: string) => Promise<void>): Promise<void> {
  const unfinished = `${path}.part`;
  try {
    await write(unfinished);
    renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
}

/** LLaMA-Factory finds a file by its entry in the folder's `dataset_info.json`. Entries of other files are kept. */
function addDatasetInfo(path: string): void {
  const list = join(dirname(path), "dataset_info.json");
  const entry = { [basename(path, extname(path))]: datasetInfo(basename(path)) };
  try {
    const others: Record<string, unknown> = existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : {};
    writeFileSync(list, `${JSON.stringify({ ...others, ...entry }, null, 2)}\n`);
  } catch (cause) {
    throw new Failure(`${list} is not JSON, so the entry of ${basename(path)} could not be added`, {
      cause,
      hint: `Correct it, and add: ${JSON.stringify(entry)}`,
    });
  }
}

function filterOf(options: Options): FilterOptions {
  const { minReward, maxReward, dedupe, bestOfGroup, perTask, maxTokens, maxMessages, passRate, unscored } = options;
  return {
    ...(minReward !== undefined && { minReward }),
    ...(maxReward !== undefined && { maxReward }),
    ...(bestOfGroup !== undefined && { bestOfGroup }),
    ...(perTask !== undefined && { perTask }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(maxMessages !== undefined && { maxMessages }),
    ...(passRate !== undefined && { passRate }),
    isDeduplicated: dedupe === true,
    keepsUnscored: unscored === true,
  };
}

function range(text: string): [number, number] {
  const [low = Number.NaN, high = Number.NaN, ...more] = text.split(",").map((bound) => (bound.trim() === "" ? Number.NaN : Number(bound)));
  if (more.length === 0 && low >= 0 && low <= high && high <= 1) return [low, high];
  throw new InvalidArgumentError("Write two shares, the lower one first, such as 0.1,0.9.");
}
