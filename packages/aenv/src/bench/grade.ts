import type { BenchModule, Grading, Prediction } from "@aenv/kit";
import { digestOf, noopAgent, type RunSettings, withoutSecrets } from "@aenv/rollout";
import type { Benchmark } from "../project/benchmarks.ts";
import { playShown } from "../rollout/played-run.ts";
import { howOf, report, runFolderOf } from "../rollout/rollout.ts";
import type { RunOptions } from "../rollout/rollout-options.ts";
import { openSource, type Source } from "../rollout/source.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type Dataset, dataSettings } from "./dataset.ts";
import { requireImages } from "./require-images.ts";
import { openResults } from "./results.ts";

/** The name of the agent in runs whose answers were graded. */
export const GRADE_AGENT = "grade";

export interface GradeOptions extends RunOptions {
  readonly predictions: string;
  readonly out?: string;
}

interface Graded {
  readonly benchmark: Benchmark;
  readonly module: BenchModule;
  readonly dataset: Dataset;
}

/** Grades answers that exist already, one episode for each, as a run. */
export async function gradePredictions({ benchmark, module, dataset }: Graded, options: GradeOptions, terminal: Terminal): Promise<void> {
  const predictions = await readPredictions(gradingOf(module, benchmark), dataset, options);
  const byTask = new Map(predictions.map((prediction) => [prediction.taskId, prediction]));
  const cancel = terminal.stopSignal();
  await using source = await openSource(benchmark.folder, { ...options, dataDir: dataset.dataDir }, terminal);
  const { engine, out } = options;
  const taskIds = predictions.filter(({ arguments: graded }) => graded !== null).map(({ taskId }) => taskId);
  await requireImages({ benchmark, module, dataset, engine, taskIds, variables: options.var ?? {} }, terminal);
  const settings = settingsOf(source, predictions, dataset, options);
  const folder = runFolderOf(settings, options, terminal);
  const listener = await openResults(
    { module, dataset, folder, settings, concurrency: options.concurrency, out, predictions: byTask },
    terminal,
  );
  const agent = { ...noopAgent(), name: GRADE_AGENT, settings: settings.agent.settings };
  const result = await playShown(
    {
      folder,
      settings,
      source,
      chosen: { agent, upstream: null, modelName: settings.model },
      ...howOf(options),
      cancel,
      answerOf: ({ task }) => byTask.get(task.id ?? "")?.arguments ?? null,
      ...(listener && { onEpisode: listener.onEpisode }),
    },
    terminal,
  );
  await report(result, folder, options, terminal, await listener?.end());
}

export function gradingOf({ grading }: BenchModule, { name }: Benchmark): Grading {
  if (grading !== undefined) return grading;
  throw new Failure(`${name} cannot grade answers that exist already`, {
    exit: "usage",
    hint: `Evaluate an agent instead: aenv bench run ${name}`,
  });
}

async function readPredictions(grading: Grading, { folder }: Dataset, { predictions, task }: GradeOptions): Promise<readonly Prediction[]> {
  let found: readonly Prediction[];
  try {
    found = await grading.readPredictions({ dataFolder: folder, predictions, ...(task && { taskIds: task }) });
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`the answers in '${predictions}' cannot be graded: ${(error as Error).message}`, { exit: "usage", cause: error });
  }
  if (found.length > 0) return found;
  throw new Failure(`there is no answer to grade in '${predictions}'`, { exit: "usage" });
}

function settingsOf(source: Source, predictions: readonly Prediction[], dataset: Dataset, options: GradeOptions): RunSettings {
  const models = [...new Set(predictions.map(({ model }) => model))];
  return {
    format: "aenv.run.v1",
    environment: source.environment,
    environment_digest: source.digest,
    variables: withoutSecrets(options.var ?? {}),
    agent: { name: GRADE_AGENT, settings: { predictions: digestOf(predictions) } },
    model: models.length === 1 ? (models[0] ?? null) : null,
    split: null,
    tasks: predictions.map(({ taskId }) => ({ id: taskId })),
    samples: 1,
    seed: 0,
    limits: {},
    records_digests: false,
    pass_reward: options.passReward,
    ...dataSettings(dataset),
    ...(source.folder !== null && { folder: source.folder }),
  };
}
