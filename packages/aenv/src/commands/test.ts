import { formatDuration, messageOf } from "@aenv/contract";
import { type Command, Option } from "commander";
import { type CheckResult, runChecks, type Subject } from "../conformance/check.ts";
import { checks } from "../conformance/checks.ts";
import { hasOwnTests, INSIDE, runOwnTests } from "../conformance/project-tests.ts";
import { type CheckedTarget, openTarget } from "../conformance/target.ts";
import { Wire } from "../conformance/wire.ts";
import { examples } from "../options/examples.ts";
import { duration, integer, number } from "../options/values.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { readProject } from "../project/project.ts";
import { addEngineOption, type EngineOptions } from "../rollout/engine-option.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter, type Printer } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends EngineOptions {
  readonly tasks: number;
  readonly passReward: number;
  readonly ownTests: boolean;
  readonly timeout: number;
  readonly loadTimeout: number;
  readonly apiKey?: string;
  readonly json?: boolean;
}

const TIMEOUT_MS = 30_000;

export function define(command: Command, terminal: Terminal): void {
  addEngineOption(
    command
      .description(
        "Checks what every environment owes: the routes that it has answer as the contract says, its oracle reaches the pass reward, doing nothing does not, and the same actions lead to the same states. It runs the project's own tests first. Works for environments in any language.",
      )
      .argument("[where]", "the project's folder, the name of a built-in environment, or the address of a running instance", "."),
  )
    .option("-n, --tasks <number>", "how many tasks are played, of each split in turn", integer(1, 10_000), 4)
    .option("--pass-reward <number>", "the reward of a solved task", number(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), 1)
    .option("--no-own-tests", "leave out the project's own tests (npm test)")
    .addOption(
      new Option("-t, --timeout <duration>", "timeout of each request").argParser(duration).default(TIMEOUT_MS, formatDuration(TIMEOUT_MS)),
    )
    .addOption(loadTimeoutOption())
    .option("--api-key <token>", "the token for the address")
    .option("--json", "print the results as JSON")
    .addHelpText("after", examples("aenv test", "aenv test ./my-env --tasks 20", "aenv test http://127.0.0.1:8081 --pass-reward 0.5"))
    .action(async (where: string, options: Options) => {
      const stop = terminal.stopSignal();
      try {
        await test(where, options, terminal, stop);
      } catch (error) {
        throw stop.aborted ? new Failure("stopped before all checks had run", { exit: "cancelled" }) : error;
      }
    });
}

async function test(where: string, options: Options, terminal: Terminal, stop: AbortSignal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  if (terminal.env[INSIDE] !== undefined) return printer.print("aenv test: left out here, because it has started these tests");
  const isAddress = /^https?:\/\//.test(where);
  const project = isAddress ? null : readProject(where, terminal.cwd);
  let ownTests: boolean | null = null;
  if (project !== null && options.ownTests && hasOwnTests(project.root, terminal)) {
    ownTests = await runOwnTests(project.root, terminal, (text) => printer.output.write(text), stop);
    printer.print();
  }
  const output: string[] = [];
  const start = async (): Promise<CheckedTarget> => {
    if (project === null) return { url: where.replace(/\/$/, ""), health: "/health", [Symbol.asyncDispose]: async () => {} };
    const { apiKey: _, ...own } = options;
    const settings = { ...own, onOutput: (line: string) => void output.push(line) };
    return withSpinner(terminal, `Starting ${project.config.name}`, () => openTarget(project, settings, terminal, stop));
  };
  const showOutput = () => output.slice(-OUTPUT_LINES).forEach((line) => void terminal.stderr.write(`${line}\n`));
  await using target = await start().catch((error: unknown) => {
    showOutput();
    throw error;
  });
  const { apiKey, timeout: timeoutMs, passReward, tasks: maxTasks } = options;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const subject: Subject = {
    wire: new Wire({ url: target.url, headers, timeoutMs, stop }),
    health: target.health,
    passReward,
    maxTasks,
    abilities: null,
    withoutEpisodes: "it has no GET /episode, so it is a plain tool server",
    tools: [],
    tasks: [],
  };
  await subject.wire.send("GET", target.health).catch((error: unknown) => {
    throw new Failure(messageOf(error), { exit: "unreachable", hint: "Is the environment running? Start it with: aenv run" });
  });
  const results = await runChecks(checks, subject, (result) => show(result, printer), stop);
  const failed = results.filter(({ result }) => result === "failed").length;
  summarise(results, ownTests, printer);
  printer.json({ environment: project?.config.name ?? where, ownTests, results });
  if (failed === 0 && ownTests !== false) return;
  showOutput();
  throw new Failure([], { exit: "failed" });
}

/** What the environment has printed last is shown after a failure. */
const OUTPUT_LINES = 40;

function show({ name, result, detail }: CheckResult, { print, output: { colors } }: Printer): void {
  if (result === "passed") print(`${colors.green("✓")} ${name}${detail === null ? "" : colors.dim(` (${detail})`)}`);
  else if (result === "failed") print(`${colors.red("✗")} ${name}\n    ${colors.red(detail ?? "")}`);
}

function summarise(results: readonly CheckResult[], ownTests: boolean | null, { print, output: { colors } }: Printer): void {
  const skipped = Map.groupBy(
    results.filter(({ result }) => result === "skipped"),
    ({ detail }) => detail ?? "",
  );
  for (const [why, names] of skipped)
    print(colors.dim(`- ${names.length === 1 ? names[0]?.name : `${names.length} checks`}: left out, because ${why}`));
  const count = (kind: CheckResult["result"]) => results.filter(({ result }) => result === kind).length;
  const failed = count("failed");
  const own = ownTests === null ? "" : ownTests ? "; its own tests passed" : colors.red("; its own tests failed");
  print(
    `\n${count("passed")} checks passed, ${failed === 0 ? "none" : colors.red(String(failed))} failed, ${count("skipped")} left out${own}`,
  );
}
