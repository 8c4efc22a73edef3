import type { Row } from "./row.ts";

/** What a column holds. A list is of one kind, a group has named fields. Everything may be null. */
export type ColumnKind = "text" | "integer" | "number" | "boolean" | readonly [ColumnKind] | { readonly [field: string]: ColumnKind };
export type Columns = Readonly<Record<string, ColumnKind>>;

interface Element {
  name: string;
  type?: "BYTE_ARRAY" | "INT64" | "DOUBLE" | "BOOLEAN";
  converted_type?: "UTF8" | "LIST";
  repetition_type?: "OPTIONAL" | "REPEATED";
  num_children?: number;
}

const PHYSICAL = { text: "BYTE_ARRAY", integer: "INT64", number: "DOUBLE", boolean: "BOOLEAN" } as const;

/** The rows that are held in memory before they are written. */
const ROW_GROUP = 1_000;

/** The columns of verl's prompt files. */
export const verlColumns: Columns = {
  data_source: "text",
  prompt: [{ role: "text", content: "text" }],
  ability: "text",
  reward_model: { style: "text", ground_truth: "text" },
  extra_info: { split: "text", index: "integer", environment: "text", task: "text" },
  agent_name: "text",
};

/** The columns of the flat table. */
export const tableColumns: Columns = {
  id: "text",
  run: "text",
  environment: "text",
  agent: "text",
  model: "text",
  task: "text",
  split: "text",
  task_index: "integer",
  role: "text",
  group_id: "text",
  sample: "integer",
  seed: "integer",
  attempt: "integer",
  scored: "boolean",
  reward: "number",
  unscored_cause: "text",
  unscored_stage: "text",
  unscored_message: "text",
  stop_reason: "text",
  truncated: "boolean",
  turns: "integer",
  tool_calls: "integer",
  tool_errors: "integer",
  prompt_tokens: "integer",
  completion_tokens: "integer",
  cost: "number",
  started_at: "text",
  total_ms: "number",
  model_ms: "number",
  tools_ms: "number",
  score_ms: "number",
  components: "text",
  messages: "text",
  tools: "text",
};

/** Writes rows to a Parquet file, a group at a time. */
export async function writeParquet(path: string, columns: Columns, rows: AsyncIterable<Row>): Promise<void> {
  // Imported when it is used: the other commands start without it.
  const { fileWriter, ParquetWriter } = await import("hyparquet-writer");
  const schema = [{ name: "root", num_children: Object.keys(columns).length }, ...Object.entries(columns).flatMap(elementsOf)];
  const writer = new ParquetWriter({ writer: fileWriter(path), schema });
  let group: Row[] = [];
  const flush = async () => {
    const columnData = Object.entries(columns).map(([name, kind]) => ({ name, data: group.map((row) => encoded(row[name], kind)) }));
    if (group.length > 0) await writer.write({ columnData, rowGroupSize: ROW_GROUP });
    group = [];
  };
  for await (const row of rows) if (group.push(row) === ROW_GROUP) await flush();
  await flush();
  await writer.finish();
}

function elementsOf([name, kind]: [string, ColumnKind]): Element[] {
  if (typeof kind === "string") {
    return [{ name, type: PHYSICAL[kind], repetition_type: "OPTIONAL", ...(kind === "text" && { converted_type: "UTF8" as const }) }];
  }
  if (isList(kind)) {
    return [
      { name, repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST" },
      { name: "list", repetition_type: "REPEATED", num_children: 1 },
      ...elementsOf(["element", kind[0]]),
    ];
  }
  const fields = Object.entries(kind);
  return [{ name, repetition_type: "OPTIONAL", num_children: fields.length }, ...fields.flatMap(elementsOf)];
}

/** Integers of 64 bits are BigInts for the writer. */
function encoded(value: unknown, kind: ColumnKind): unknown {
  if (value === null || value === undefined) return null;
  if (kind === "integer") return BigInt(value as number);
  if (typeof kind === "string") return value;
  if (isList(kind)) return (value as readonly unknown[]).map((one) => encoded(one, kind[0]));
  return Object.fromEntries(Object.entries(kind).map(([field, inner]) => [field, encoded((value as Row)[field], inner)]));
}

function isList(kind: ColumnKind): kind is readonly [ColumnKind] {
  return Array.isArray(kind);
}
