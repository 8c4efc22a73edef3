import Table from "cli-table3";
import colors from "picocolors";
import type { Row } from "./row.ts";

export function drawTable(rows: readonly Row[]): string {
  const table = new Table({
    head: ["suite", "what", "value", "beside", "ratio", "aim", ""],
    colAligns: ["left", "left", "right", "left", "right", "left", "left"],
    style: { head: [], border: [], compact: true },
  });
  for (const row of rows) {
    table.push([
      row.suite,
      row.name,
      `${row.value} ${row.unit}`,
      colors.dim(row.beside ?? ""),
      row.ratio === null ? "" : `${row.ratio} x`,
      colors.dim(row.aim ?? ""),
      row.aim === null ? "" : row.holds ? colors.green("holds") : colors.red("missed"),
    ]);
  }
  return `${table.toString()}\n`;
}
