import { formatBytes, type SnapshotRecord } from "@aenv/contract";
import { statusText, table, timeText } from "../terminal/table.ts";
import type { Output } from "../terminal/terminal.ts";

export function snapshotTable(records: readonly SnapshotRecord[], output: Output): string {
  const { colors } = output;
  const rows = records.map((one) => [
    colors.bold(one.name),
    one.environment,
    one.owner,
    one.fidelity,
    formatBytes(one.bytes),
    statusText(one.status, colors),
    timeText(one.created_at),
  ]);
  return table(["snapshot", "environment", "owner", "fidelity", "size", "status", "created"], rows, output, ["owner", "created"]);
}
