import { defineEnvironment, type EnvironmentDefinition, type OracleAction, sandboxTools } from "@aenv/kit";
import * as z from "zod";
import { type Dataset, openDataset } from "../data/folder.ts";
import { columnText, instanceIdOf, type Row } from "../dataset/row.ts";
import { REPOSITORY } from "../evaluate/attempts.ts";
import { makeSpec } from "../spec/spec.ts";
import { answerOf, artifactsOf } from "./answer.ts";
import { type Graded, type GradeOptions, gradeAnswer, gradeEpisode } from "./grade.ts";
import { promptOf } from "./prompt.ts";
import { readSettings, type Variables } from "./settings.ts";

/** The state of an episode: its files are in its sandbox. */
interface Episode {
  /** Null without a task: answers can be graded, and there is nothing to play. */
  readonly instance: string | null;
}

const SETUP_TIMEOUT_MS = 30 * 60_000;
const SOLUTION = "/tmp/solution.patch";

const rewardInput = z.object({
  instance: z.string().min(1).optional().describe("The id of an instance; that of the episode by default"),
  // The original's example sends a list with one text.
  model_patch: z
    .union([z.string(), z.tuple([z.string()]), z.null()])
    .optional()
    .describe("A patch to grade; by default the changes that the agent has made in the sandbox"),
  timeout: z.number().positive().max(86_400).optional().describe("Seconds that the tests may take"),
});

/** SWE-bench as an environment. `base` are the variables of the process; an instance's own variables override them. */
export function swebenchEnvironment(base: Variables): EnvironmentDefinition<Episode> {
  const settingsOf = (own: Variables) => readSettings({ ...base, ...own });
  const datasetOf = (own: Variables) => openDataset(settingsOf(own).dataFolder);
  const lists = new WeakMap<Dataset, readonly ReturnType<typeof taskOf>[]>();
  const tasksOf = async (own: Variables) => {
    const dataset = await datasetOf(own);
    const list = lists.get(dataset) ?? dataset.rows.map(taskOf);
    lists.set(dataset, list);
    return list;
  };
  /** The row of an episode; null without a task. */
  const rowOf = async ({ instance }: Episode, own: Variables) => (instance === null ? null : (await datasetOf(own)).get(instance));
  /** What the last reward of an episode has left. */
  const graded = new WeakMap<Episode, { readonly instance: string; readonly result: Graded }>();

  return defineEnvironment({
    setupTimeoutMs: SETUP_TIMEOUT_MS,
    setup: async ({ task, variables, sandboxes, signal }): Promise<Episode> => {
      const source = variables.AENV_DATASOURCE;
      if (task === null && !source) return { instance: null };
      const dataset = await datasetOf(variables);
      const row = task === null ? dataset.ofDatasource(source ?? "") : dataset.get(task.id);
      const { network } = settingsOf(variables);
      await sandboxes.open({ image: makeSpec(row).image, signal, ...(network !== "all" && { egress: "none" }) });
      return { instance: instanceIdOf(row) };
    },
    tasks: () => tasksOf({}),
    tasksOf: ({ variables }) => tasksOf(variables),
    observe: async ({ state, variables }) => {
      const row = await rowOf(state, variables);
      return row === null ? null : promptOf(row);
    },
    oracle: async ({ state, variables }) => {
      const row = await rowOf(state, variables);
      return row === null ? null : solutionOf(row);
    },
    digest: ({ instance }) => ({ instance }),
    tools: [...sandboxTools<Episode>({ cwd: REPOSITORY, login: true })],
    rewards: [
      {
        name: "swebench_reward",
        description: "1 if the tests of the instance pass with the agent's changes, or with the given patch, in a new sandbox; else 0.",
        input: rewardInput,
        score: async ({ input, state, variables, sandboxes, signal }) => {
          const settings = settingsOf(variables);
          const instance = input.instance ?? state.instance;
          if (instance === null) throw new Error("there is no task: begin an episode with one, or name an instance");
          const dataset = await openDataset(settings.dataFolder);
          const options: GradeOptions = {
            row: dataset.get(instance),
            dataset,
            sandboxes,
            timeoutSeconds: input.timeout ?? settings.timeoutSeconds,
            hasNetwork: settings.network !== "none",
            signal,
          };
          const result = await grade(options, state, input.model_patch, settings.isStrict);
          graded.set(state, { instance, result });
          return answerOf(instance, result);
        },
      },
    ],
    functions: [
      {
        name: "episode_artifacts",
        description: "The files that the last reward has left: the patch, the output of the tests, the report, the script and the log.",
        run: (_, { state }) => {
          const last = graded.get(state);
          return { files: last === undefined ? {} : artifactsOf(last.instance, last.result) };
        },
      },
    ],
  });
}

type GivenPatch = z.infer<typeof rewardInput>["model_patch"];

function grade(options: GradeOptions, { instance }: Episode, given: GivenPatch, isStrict: boolean): Promise<Graded> {
  if (given !== undefined) return gradeAnswer(options, typeof given === "string" ? given : (given?.[0] ?? ""));
  const wanted = instanceIdOf(options.row);
  if (wanted !== instance)
    throw new Error(`the episode plays ${instance ?? "no task"}: name its instance, or give a model_patch for ${wanted}`);
  return gradeEpisode(options, options.sandboxes.get("task"), isStrict);
}

/** The agent sees `instruction` alone. */
function taskOf(row: Row) {
  const spec = makeSpec(row);
  const difficulty = row.get("difficulty");
  const split = row.get("split");
  return {
    id: spec.instanceId,
    instruction: promptOf(row),
    repo: spec.repo,
    image: spec.image,
    ...(typeof split === "string" && { split }),
    ...(typeof difficulty === "string" && { difficulty }),
  };
}

/** Through the tools, as an agent does it. A patch can be too long for a command. */
function solutionOf(row: Row): OracleAction[] {
  return [
    { tool: "write_file", arguments: { path: SOLUTION, content: columnText(row, "patch") } },
    { tool: "bash", arguments: { command: `git apply --verbose ${SOLUTION}` } },
  ];
}
