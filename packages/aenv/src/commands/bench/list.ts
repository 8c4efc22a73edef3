import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { listBenchmarks } from "../../project/benchmarks.ts";
import { dataDir } from "../../project/data-dir.ts";
import { table } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { tildePath } from "../../terminal/tilde-path.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("list the benchmarks, their folders and their data")
    .description("Lists the benchmarks of this package, with their project folders and whether their data is prepared.");
  addOutputOption(command)
    .addHelpText("after", examples("aenv bench list", "aenv bench list --json"))
    .action((options: FormatOptions) => list(options, terminal));
}

function list(options: FormatOptions, terminal: Terminal): void {
  const printer = printerFor(terminal, options);
  const found = listBenchmarks().map(({ name, version, description, folder }) => {
    const data = join(dataDir(terminal.env), name);
    return { name, version, description, folder, data: existsSync(data) ? data : null };
  });
  printer.json(found);
  if (printer.isJson) return;
  const { colors } = printer.output;
  const rows = found.map(({ name, version, folder, data }) => [
    colors.bold(name),
    version,
    data === null ? colors.yellow("none yet") : tildePath(data),
    tildePath(folder),
  ]);
  printer.print(table(["name", "version", "data", "folder"], rows, printer.output));
  for (const { name } of found.filter(({ data }) => data === null))
    printer.print(`${colors.dim("Prepare its data:")} aenv bench data ${name} --from DIR_OR_URL`);
}
