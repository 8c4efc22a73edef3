import { join, resolve } from "node:path";
import type { Command } from "commander";
import { prepareData, sourceOf } from "../../bench/dataset.ts";
import { examples } from "../../options/examples.ts";
import { collect } from "../../options/pairs.ts";
import { getBenchmark, type PreparedData, type PreparedDomains } from "../../project/benchmarks.ts";
import { dataDir } from "../../project/data-dir.ts";
import { createPrinter, type Printer } from "../../terminal/printer.ts";
import { countText, facts, table } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { tildePath } from "../../terminal/tilde-path.ts";

interface Options {
  readonly from: string;
  readonly to?: string;
  readonly domain?: string[];
  readonly strict?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("prepare a benchmark's data")
    .description(
      "Prepares a benchmark's data directory from a checkout or an archive of the benchmark, and compares it with the revision that the environment was measured with. Nothing is written unless the source is complete.",
    )
    .argument("<name>", "the benchmark")
    .requiredOption(
      "--from <dir-or-url>",
      "a checkout, the folder of its data alone if the benchmark takes that, a .tar.gz archive of a checkout, or its http(s) address",
    )
    .option("--to <folder>", "the data directory; the environment's default if not given")
    .option("--domain <name>", "only this part of the benchmark; may be repeated", collect)
    .option("--strict", "refuse files that differ from the known revision")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      examples(
        "aenv bench data tau2 --from ./tau2-bench",
        "aenv bench data tau2 --from https://github.com/sierra-research/tau2-bench/archive/REVISION.tar.gz --strict",
        "aenv bench data tau2 --from tau2-bench.tar.gz --domain airline --domain retail --to ./data",
      ),
    )
    .action((name: string, options: Options) => data(name, options, terminal));
}

async function data(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const benchmark = getBenchmark(named, terminal.cwd);
  const { name } = benchmark;
  const defaultFolder = join(dataDir(terminal.env), name);
  const to = options.to === undefined ? defaultFolder : resolve(terminal.cwd, options.to);
  const { domain: domains, strict: isStrict = false } = options;
  const prepared = await prepareData(benchmark, sourceOf(options.from, terminal.cwd), to, { domains, isStrict }, terminal);
  printer.json({ name, ...prepared });
  printReport(name, prepared, printer);
  if (to !== defaultFolder)
    printer.print(`  ${printer.output.colors.dim("Set for the environment:")} ${name.toUpperCase().replaceAll("-", "_")}_DATA_DIR=${to}`);
  printer.print(`  ${printer.output.colors.dim("Play it:")}    aenv rollout ${name}`);
  printer.print(`  ${printer.output.colors.dim("Publish it:")} aenv push --work-dir ${name}`);
}

function printReport(name: string, prepared: PreparedData | PreparedDomains, printer: Printer): void {
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(name)}'s data is in ${colors.cyan(tildePath(prepared.to))}`);
  printer.print();
  if ("domains" in prepared) printDomains(name, prepared, printer);
  if (prepared.facts !== undefined) printer.print(`${facts([...prepared.facts], printer.output)}\n`);
  for (const warning of prepared.warnings ?? []) printer.print(`${colors.yellow("!")} ${warning}`);
}

function printDomains(name: string, prepared: PreparedDomains, printer: Printer): void {
  const { colors } = printer.output;
  const { domains, tools, prompts, ownPrompts, hashes, knownRevision, differing, absent, unread } = prepared;
  const within = (paths: readonly string[], folder: string) => paths.filter((path) => path.startsWith(`${folder}/`)).length;
  const state = (folder: string): string => {
    const [other, missing] = [within(differing, folder), within(absent, folder)];
    if (other + missing === 0) return colors.green(`as in ${knownRevision}`);
    return colors.yellow([other > 0 && `${other} differ`, missing > 0 && `${missing} missing`].filter(Boolean).join(", "));
  };
  const files = (folder: string): string => String(within(Object.keys(hashes), folder));
  const rows = domains.map((domain) => [colors.bold(domain), String(tools[domain]), files(domain), state(domain)]);
  printer.print(table(["domain", "tools", "files", "hashes"], rows, printer.output));
  printer.print(`  ${countText(prompts.length, "prompt")}, ${files("user_simulator")} guidelines for users (${state("user_simulator")})`);
  printer.print();

  const warn = (text: string, items: readonly string[]): void => {
    if (items.length === 0) return;
    printer.print(`${colors.yellow("!")} ${text}`);
    for (const item of items) printer.print(`    ${item}`);
    printer.print();
  };
  const other = [...differing, ...absent.map((path) => `${path} (missing)`)];
  warn(`Different from revision ${knownRevision}, which ${name} was measured with; scores may not be comparable:`, other);
  warn(
    "Tools with descriptions of this package, because those of the benchmark could not be read:",
    unread.map((tool) => `${tool.domain} ${tool.name}: ${tool.reason}`),
  );
  warn("Prompts of this package, because those of the benchmark were not found:", ownPrompts);
}
