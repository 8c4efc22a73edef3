import { homeFolder } from "@aenv/server/folders";
import { type Command, Option } from "commander";
import { type Check, diagnose, type EngineName, engineNames } from "../doctor/checks.ts";
import { examples } from "../options/examples.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import { table, truncate } from "../terminal/table.ts";
import type { Output, Terminal } from "../terminal/terminal.ts";

interface Options {
  readonly engine: EngineName;
  readonly home?: string;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Tries which engines and tools work on this machine: it starts sandboxes, mounts an overlay and sets limits, and removes them again. For what does not work it prints the reason and how to get it. Fails if the chosen engine does not work.",
    )
    .addOption(new Option("--engine <name>", "the engine that has to work").choices(engineNames).default("process"))
    .option("--home <folder>", "the server's home folder, where its sandboxes are [$AENV_HOME]")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv doctor", "aenv doctor --engine oci/runsc", "aenv doctor --json"))
    .action((options: Options) => doctor(options, terminal));
}

async function doctor(options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const home = homeFolder(options.home ?? terminal.env.AENV_HOME);
  const { engines, parts } = await withSpinner(terminal, "Trying engines and tools", () => diagnose({ home, env: terminal.env }));
  const chosen = engines.find(({ name }) => name === options.engine) as Check;
  printer.json({ engine: options.engine, works: chosen.ok, engines, parts });
  if (!printer.isJson) {
    printer.print(rows("engine", engines, printer.output));
    printer.print(rows("part", parts, printer.output));
    for (const { name, ok, detail, get } of parts) {
      if (ok) continue;
      const { colors } = printer.output;
      printer.print(`${colors.bold(name)}: ${detail}${get === null ? "" : `\n  ${colors.dim("To get it:")} ${get}`}`);
    }
  }
  // The answer says why, so nothing more is printed.
  if (!chosen.ok) throw printer.isJson ? new Failure([]) : failureOf(chosen);
}

function rows(title: string, checks: readonly Check[], output: Output): string {
  const { colors } = output;
  const lines = checks.map(({ name, ok, detail, use }) => [
    ok ? colors.green("✔") : colors.yellow("✗"),
    colors.bold(name),
    truncate(detail, 64),
    detail === use ? "" : colors.dim(use),
  ]);
  return table(["", title, "result", "used for"], lines, output);
}

function failureOf({ name, detail, get }: Check): Failure {
  return new Failure(`the engine ${name} ${detail}`, { hint: get === null ? undefined : `To get it: ${get}` });
}
