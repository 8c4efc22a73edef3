import { messageOf, type Trajectory } from "@aenv/contract";
import { Concurrency, type Difference, EpisodeDeadline, type ReplayResult, type RunSettings, replay } from "@aenv/rollout";
import { Environment } from "@aenv/sdk";
import type { Command } from "commander";
import { dataOfRun } from "../bench/run-data.ts";
import { examples } from "../options/examples.ts";
import { integer } from "../options/values.ts";
import { addPlatformOptions } from "../platform/platform.ts";
import { deadlineOption } from "../rollout/deadline-option.ts";
import { addRunsOption, getRun, type RunsOptions } from "../rollout/run-option.ts";
import { openRunSource } from "../rollout/run-source.ts";
import { addSourceOptions, type Source, type SourceOptions } from "../rollout/source.ts";
import { excerpts } from "../terminal/excerpts.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warn } from "../terminal/warning.ts";

interface Options extends RunsOptions, SourceOptions {
  readonly environment?: string;
  readonly concurrency: number;
  readonly deadline: number;
  readonly json?: boolean;
}

/** A replay that failed says nothing about the trajectory. */
type Replayed = { readonly id: string } & (
  | Exclude<ReplayResult, { readonly kind: "diverged" }>
  /** The tool of the step that differs; null if it is not a step. */
  | (Extract<ReplayResult, { readonly kind: "diverged" }> & { readonly tool: string | null })
  | { readonly kind: "failed"; readonly message: string }
);

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Plays the actions of a run's trajectories again, each on a fresh instance, and compares all that the environment answers. Exits with 1 if one differs. Unscored episodes are skipped.",
    )
    .argument("<run>", "the name of the run, or its folder")
    .argument("[trajectory]", "the id of one trajectory, with or without the name of the run")
    .option("--environment <environment>", "a folder, a built-in environment, or name@version; the run's own if not given")
    .option("-c, --concurrency <number>", "trajectories at the same time", integer(1, 100_000), 16)
    .addOption(deadlineOption("fails"));
  addSourceOptions(command, "a variable for the instances besides those of the run; may be repeated").option(
    "--json",
    "print the results as JSON",
  );
  addPlatformOptions(addRunsOption(command))
    .addHelpText("after", examples("aenv replay NAME", "aenv replay NAME 0-0", "aenv replay NAME --environment ./my-env"))
    .action((named: string, trajectory: string | undefined, options: Options) => replayRun(named, trajectory, options, terminal));
}

async function replayRun(named: string, wanted: string | undefined, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const stop = terminal.stopSignal();
  const run = getRun(named, options, terminal);
  const settings = run.settings() as RunSettings;
  const isWanted = ({ id }: Trajectory) => wanted === undefined || id === wanted || id === `${run.name}/${wanted}`;
  const data = await dataOfRun(settings, options, terminal);
  await using source = await openRunSource(settings, options.environment, { ...options, ...data }, terminal);
  if (settings.environment_digest !== null && source.digest !== settings.environment_digest) {
    warn(terminal, `${source.environment} is not the code that the run was played with: its digest is ${source.digest}`);
  }

  const replayed: Replayed[] = [];
  let [found, skipped] = [0, 0];
  async function* scored(): AsyncGenerator<Trajectory> {
    for await (const trajectory of run.trajectories()) {
      if (!isWanted(trajectory)) continue;
      found++;
      if (trajectory.outcome.kind === "unscored") skipped++;
      else yield trajectory;
    }
  }
  await new Concurrency({ max: options.concurrency }).forEach(scored(), stop, async (trajectory) => {
    replayed.push(await replayOne(trajectory, source, new EpisodeDeadline(options.deadline, stop)));
  });
  if (stop.aborted) throw new Failure(`stopped after ${replayed.length} trajectories`, { exit: "cancelled" });
  if (found === 0) throw nothingFound(run.name, wanted);
  if (skipped === found) throw nothingScored(run.name, found);

  const unequal = replayed.filter(({ kind }) => kind !== "equal").sort((a, b) => (a.id < b.id ? -1 : 1));
  const equal = replayed.length - unequal.length;
  printer.json({ run: run.name, environment: source.environment, equal, skipped, unequal });
  for (const one of unequal) printer.print(unequalText(one));
  const { colors } = printer.output;
  const also = skipped === 0 ? "" : `, ${skipped} unscored skipped`;
  printer.print(`${unequal.length === 0 ? colors.green("✔") : colors.red("✘")} ${equal} of ${replayed.length} trajectories equal${also}`);
  if (unequal.length > 0) {
    if (printer.isJson) throw new Failure([]);
    const failed = unequal.filter(({ kind }) => kind === "failed").length;
    const parts = [
      unequal.length > failed ? `${unequal.length - failed} of ${replayed.length} trajectories differ` : [],
      failed > 0 ? `${failed} of ${replayed.length} could not be replayed` : [],
    ];
    throw new Failure(parts.flat().join(", "), { code: unequal.length > failed ? "replay.unequal" : "replay.failed" });
  }
}

async function replayOne(trajectory: Trajectory, { environment, options }: Source, deadline: EpisodeDeadline): Promise<Replayed> {
  using _ = deadline;
  const { signal } = deadline;
  const { id, task, seed } = trajectory;
  const instance = new Environment(environment, { ...options, ...(task.id !== null && { task: task.id }), seed });
  try {
    await instance.initialize({ signal });
    const result = await replay(trajectory, { instance, signal, now: () => performance.now() });
    // What was cut off may look like another answer.
    if (deadline.isOver) throw signal.reason;
    if (result.kind === "equal") return { id, ...result };
    const { step } = result.divergence;
    return { id, ...result, tool: step === null ? null : (trajectory.steps[step]?.call.name ?? null) };
  } catch (error) {
    return { id, kind: "failed", message: messageOf(deadline.isOver ? signal.reason : error) };
  } finally {
    await instance.release();
  }
}

function unequalText(one: Replayed): string {
  if (one.kind === "equal") return `${one.id}: equal`;
  if (one.kind === "failed") return `${one.id}: the replay failed: ${one.message}`;
  const { at, step, differences } = one.divergence;
  const place = step === null ? at : `${at} ${at === "state" ? "after" : "of"} step ${step}, ${one.tool},`;
  return `${one.id}: the ${place} differs\n${differences.slice(0, 1).map(differenceText).join("\n")}`;
}

function differenceText({ path, expected, actual }: Difference): string {
  const [was, is] = excerpts(JSON.stringify(expected) ?? "nothing", JSON.stringify(actual) ?? "nothing");
  return `  ${path || "value"}\n    expected  ${was}\n    actual    ${is}`;
}

function nothingScored(run: string, count: number): Failure {
  return new Failure(`there is nothing to replay in run '${run}': ${count} unscored, none scored`, {
    code: "replay.nothing",
    hint: "Play them again with: aenv rollout ... --retry-unscored",
  });
}

function nothingFound(run: string, wanted: string | undefined): Failure {
  return wanted === undefined
    ? new Failure(`run '${run}' has no trajectories`, { exit: "usage", hint: "Play it with: aenv rollout" })
    : new Failure(`run '${run}' has no trajectory '${wanted}'`, {
        exit: "usage",
        hint: `Ids are TASK-SAMPLE by number, e.g. 0-0. List them with: aenv export ${run} --format trajectories`,
      });
}
