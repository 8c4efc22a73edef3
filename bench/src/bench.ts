import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { saveResults } from "./results.ts";
import { type Row, toRow } from "./row.ts";
import type { Outcome, Suite } from "./suite.ts";
import { drawTable } from "./table.ts";

const HELP = `npm run bench [-- options]

Runs measurements, each compared with a baseline on the same machine in the same run.

  --only SUITE   run this suite only; several are separated by commas
  --json         print one JSON array of rows on stdout and nothing else
                 (npm prints a banner of its own: npm --silent run bench -- --json)
  --save         write bench/results/<suite>.json, as a run of all suites always does
  --help         show this
`;

/** Returns the exit code. A missed aim is not a failure; a measurement that could not be made is. */
export async function runBench(suites: readonly Suite[], argv: readonly string[], results: URL): Promise<number> {
  const options = readOptions(argv);
  if (typeof options === "string") return refuse(options);
  if (options.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const names = options.only?.split(",") ?? suites.map((suite) => suite.name);
  const unknown = names.filter((name) => !suites.some((suite) => suite.name === name));
  if (unknown.length > 0) {
    return refuse(`no suite is called '${unknown.join("', '")}'; the suites are: ${suites.map((suite) => suite.name).join(", ")}`);
  }

  const outcomes: Outcome[] = [];
  for (const suite of suites.filter((one) => names.includes(one.name))) {
    const outcome = await runSuite(suite);
    outcomes.push(outcome);
    const isSaved = options.save || options.only === undefined;
    if (isSaved && outcome.isComplete) await saveResults(results, suite.name, outcome);
  }
  const rows = outcomes.flatMap((outcome) => outcome.rows);
  process.stdout.write(options.json ? `${JSON.stringify(rows, null, 2)}\n` : drawTable(rows));
  for (const line of outcomes.flatMap((outcome) => outcome.leftOut)) printLine(`left out: ${line}`);
  for (const line of outcomes.flatMap((outcome) => outcome.failed)) printLine(`failed: ${line}`);
  return outcomes.some((outcome) => outcome.failed.length > 0) ? 1 : 0;
}

async function runSuite(suite: Suite): Promise<Outcome> {
  const begin = { startedAt: new Date(), loadAverage: loadavg()[0] ?? 0 };
  const rows: Row[] = [];
  const leftOut: string[] = [];
  const lacks = (await suite.needs?.()) ?? null;
  if (lacks !== null) return { ...begin, rows, leftOut: [`${suite.name}: ${lacks}`], failed: [], isComplete: false };
  try {
    await suite.run({
      add: (measurement) => void rows.push(toRow(suite.name, measurement)),
      skip: (what, why) => void leftOut.push(`${suite.name}, ${what}: ${why}`),
      progress: (text) => printLine(`${suite.name}: ${text}`),
    });
    return { ...begin, rows, leftOut, failed: [], isComplete: true };
  } catch (error) {
    return { ...begin, rows, leftOut, failed: [`${suite.name}: ${(error as Error).stack ?? error}`], isComplete: false };
  }
}

interface Options {
  readonly only: string | undefined;
  readonly json: boolean;
  readonly save: boolean;
  readonly help: boolean;
}

/** The options, or the problem with them. */
function readOptions(argv: readonly string[]): Options | string {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: { only: { type: "string" }, json: { type: "boolean" }, save: { type: "boolean" }, help: { type: "boolean", short: "h" } },
    });
    return { only: values.only, json: values.json === true, save: values.save === true, help: values.help === true };
  } catch (error) {
    return (error as Error).message;
  }
}

function refuse(message: string): number {
  printLine(message);
  return 2;
}

function printLine(line: string): void {
  process.stderr.write(`${line}\n`);
}
