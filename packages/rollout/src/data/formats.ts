import type { Trajectory } from "@aenv/contract";
import { toAtif } from "./atif.ts";
import { type Filtered, type FilterOptions, filterTrajectories } from "./filter.ts";
import { llamaFactoryRows } from "./llama-factory.ts";
import { type Columns, tableColumns, verlColumns } from "./parquet.ts";
import { endsWith, ktoRows, type PairEnds, preferencePairs } from "./preference.ts";
import { type PromptFormat, promptRow } from "./prompt-rows.ts";
import { type Sample, samplesOf } from "./role-views.ts";
import type { Row, Skipped } from "./row.ts";
import { openaiRows, sftRows } from "./sft.ts";
import { tableRow } from "./table-row.ts";
import { tokenRows } from "./token-rows.ts";

/** A form of training data. */
export interface ExportFormat {
  /** The columns of a Parquet file; null for JSON lines. */
  readonly columns: Columns | null;
  /** Whether a row says that its episode is unscored, or has a mask for it. Other formats never have unscored episodes. */
  readonly marksUnscored: boolean;
  /** Whether its rows are whole episodes. In other formats each trainable role of an episode has rows of its own. */
  readonly keepsRoles?: boolean;
  rows(kept: AsyncIterable<Sample>, context: RowContext): AsyncIterable<Row>;
}

export interface RowContext {
  /** A reward of at least this counts as passed. */
  readonly passReward: number;
  /** The same trajectories once more, for formats that have to know all of them first. */
  again(): AsyncIterable<Sample>;
  /** Called for each trajectory that has no row. */
  skip(reason: Skipped): void;
}

export const exportFormats = {
  sft: jsonLines(each(sftRows)),
  openai: jsonLines(each(openaiRows)),
  "llama-factory": jsonLines(each(llamaFactoryRows)),
  preference: jsonLines(pairs),
  kto: jsonLines(each(ktoRows)),
  tokens: { ...jsonLines(each(tokenRows)), marksUnscored: true },
  verl: { ...prompts("verl"), columns: verlColumns },
  slime: prompts("slime"),
  areal: prompts("areal"),
  trl: prompts("trl"),
  table: { columns: tableColumns, marksUnscored: true, rows: each((one) => [tableRow(one)]) },
  atif: { ...jsonLines(each((one) => [toAtif(one)])), marksUnscored: true },
  trajectories: { ...jsonLines(each((one) => [{ ...one }])), marksUnscored: true, keepsRoles: true },
} as const satisfies Record<string, ExportFormat>;

export type ExportFormatName = keyof typeof exportFormats;

/** How many trajectories went into an export, how many did not, and why. */
export interface ExportCounts extends Filtered {
  readonly rows: number;
  readonly skipped: Readonly<Partial<Record<Skipped, number>>>;
}

/** The rows of an export. `onEnd` is called with the counts after the last one. */
export async function* exportRows(
  read: () => AsyncIterable<Trajectory>,
  name: ExportFormatName,
  filter: FilterOptions,
  onEnd: (counts: ExportCounts) => void,
): AsyncGenerator<Row> {
  const format: ExportFormat = exportFormats[name];
  let filtered: Filtered = { kept: 0, dropped: {} };
  const skipped: Partial<Record<Skipped, number>> = {};
  const wanted = { ...filter, keepsUnscored: filter.keepsUnscored === true && format.marksUnscored };
  const samples = format.keepsRoles === true ? read : () => samplesOf(read());
  const kept = filterTrajectories(samples, wanted, (counts) => {
    filtered = counts;
  });
  const again = () => filterTrajectories(samples, wanted);
  const skip = (reason: Skipped) => {
    skipped[reason] = (skipped[reason] ?? 0) + 1;
  };
  let rows = 0;
  for await (const row of format.rows(kept, { passReward: filter.passReward ?? 1, again, skip })) {
    rows++;
    yield row;
  }
  onEnd({ ...filtered, rows, skipped });
}

function jsonLines(rows: ExportFormat["rows"]): ExportFormat {
  return { columns: null, marksUnscored: false, rows };
}

/** A format in which every trajectory has its rows, or a reason why it has none. */
function each(rowsOf: (one: Sample, passReward: number) => readonly Row[] | Skipped): ExportFormat["rows"] {
  return async function* (kept, { passReward, skip }) {
    for await (const one of kept) {
      const rows = rowsOf(one, passReward);
      if (typeof rows === "string") skip(rows);
      else yield* rows;
    }
  };
}

/** A file of tasks: one row a task, in the order in which they were first played. A task has no score, so unscored ones may be in it. */
function prompts(format: PromptFormat): ExportFormat {
  const rows: ExportFormat["rows"] = async function* (kept, { skip }) {
    const seen = new Set<string>();
    for await (const one of kept) {
      const task = `${one.task.split ?? ""}/${one.task.id ?? ""}`;
      if (seen.has(task)) skip("same task");
      else yield promptRow(one, format);
      seen.add(task);
    }
  };
  return { ...jsonLines(rows), marksUnscored: true };
}

/** Samples of one group may be anywhere in a run, so each pair is chosen first. At most one trajectory of a group is in memory. */
async function* pairs(kept: AsyncIterable<Trajectory>, { again, skip }: RowContext): AsyncGenerator<Row> {
  const groups = new Map<string, PairEnds>();
  for await (const one of kept) {
    const key = groupOf(one);
    groups.set(key, endsWith(groups.get(key), one));
  }
  for (const { count, chosen, rejected } of groups.values()) {
    const isPair = chosen !== null && rejected !== null && chosen.reward > rejected.reward;
    for (let unused = count - (isPair ? 2 : 0); unused > 0; unused--) skip("no pair in its group");
  }
  const waiting = new Map<string, Sample>();
  for await (const one of again()) {
    const key = groupOf(one);
    const ends = groups.get(key);
    if (one.id !== ends?.chosen?.id && one.id !== ends?.rejected?.id) continue;
    const other = waiting.get(key);
    if (other !== undefined) yield* preferencePairs([other, one], { minMargin: 0, perGroup: 1 });
    if (other !== undefined) waiting.delete(key);
    else if ((ends.chosen?.reward ?? 0) > (ends.rejected?.reward ?? 0)) waiting.set(key, one);
  }
}

function groupOf({ group, id }: Sample): string {
  return group?.id ?? id;
}
