import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ChatMessage, defineEnvironment, type EnvironmentDefinition, sandboxTools, type ToolDefinition } from "@aenv/kit";
import { contextMessages } from "../atif/context.ts";
import type { Task } from "../task/model.ts";
import type { Trial } from "../trial/trial.ts";
import { agentHints } from "./agent-files.ts";
import { artifactFiles } from "./artifacts.ts";
import { Episode, type EpisodeRecord } from "./episode.ts";
import { TaskLibrary } from "./library.ts";
import { scoreOf } from "./score.ts";
import { readSettings, type Settings, type Variables } from "./settings.ts";
import { terminalTools } from "./terminal-tools.ts";

export interface TerminalBenchOptions {
  /** The folder of tasks that the environment itself contains; null if it contains none. */
  readonly tasksFolder: string | null;
  /** The variables of the process; an instance's own variables override them. */
  readonly variables: Variables;
}

const SYSTEM =
  "You work in a Linux container. The tool bash runs commands; the other tools read, write, edit and list files. Do what the user asks, check the result, and then say that you are done.";

const DEFAULT_COMMAND_SEC = 120;

/** Enough for a slow image and a healthcheck; the platform has a limit of its own. */
const SETUP_TIMEOUT_MS = 60 * 60_000;

/** An instance without a task lists the tasks, and starts no sandbox. */
export interface State {
  readonly episode: Episode | null;
}

/** Tasks of Terminal-Bench and of Harbor as an environment: a terminal in the task's container, and the task's own verifier. */
export function terminalBench({ tasksFolder, variables: base }: TerminalBenchOptions): EnvironmentDefinition<State> {
  const libraries = new Map<string, Promise<TaskLibrary>>();
  const settingsOf = (own: Variables): Settings => readSettings({ ...base, ...own }, tasksFolder);
  const libraryOf = ({ dataPath, dataset }: Settings): Promise<TaskLibrary> => {
    if (dataPath === null)
      throw new Error("there are no tasks: prepare them with 'aenv bench data terminal-bench --from DIR', or set TERMINAL_BENCH_DATA_DIR");
    const key = `${dataPath}\n${dataset ?? ""}`;
    const known = libraries.get(key) ?? TaskLibrary.open(dataPath, dataset);
    libraries.set(key, known);
    known.catch(() => libraries.delete(key));
    return known;
  };
  const listOf = async (own: Variables) => (await libraryOf(settingsOf(own))).list();

  return defineEnvironment({
    setupTimeoutMs: SETUP_TIMEOUT_MS,
    setup: async ({ task: chosen, variables, ...context }) => {
      const settings = settingsOf(variables);
      const library = await libraryOf(settings);
      const id = chosen?.id ?? settings.datasource ?? settings.taskId;
      return { episode: id === null ? null : await Episode.open(await library.get(id), settings, variables, context) };
    },
    teardown: ({ episode }) => episode?.close(),
    prompt: ({ state: { episode } }) => {
      if (episode === null) return "This instance has no task.";
      const { task, plan } = episode.trial;
      const system = [SYSTEM, ...agentHints(task)].join("\n");
      return [{ role: "system", content: system }, ...priorMessages(task), { role: "user", content: plan.instruction }];
    },
    reply: async (_, { state, ...context }) => {
      const next = (await state.episode?.endStep(context)) ?? null;
      return next === null ? { done: true } : { content: next };
    },
    status: ({ state: { episode } }) => {
      if (episode?.trial.isOver !== false) return episode !== null;
      return episode.trial.remainingMs() === 0 ? { done: true, reason: "agent_timeout" } : false;
    },
    oracle: async ({ state: { episode }, ...context }) => episode?.oracle(context) ?? null,
    digest: ({ episode }) =>
      episode && { task: episode.taskId, rewards: episode.trial.report.steps.map((step) => step.verification?.rewards ?? null) },
    snapshot: ({ episode }) => episode?.record() ?? null,
    restore: async (snapshot, { variables }) => {
      const record = snapshot as EpisodeRecord | null;
      if (record === null) return { episode: null };
      const settings = settingsOf(variables);
      const task = await (await libraryOf(settings)).get(record.taskId);
      return { episode: await Episode.restore(task, settings, variables, record) };
    },
    tasks: () => listOf({}),
    tasksOf: ({ variables }) => listOf(variables),
    tools: agentTools(),
    functions: [
      {
        name: "episode_artifacts",
        description: "The files of the trial: logs of the agent, output of the verifier, artifacts with their manifest, and trial.json.",
        run: (_, { state: { episode } }) =>
          episode === null ? { files: {} } : artifactFiles(episode.trial.folder, episode.trial.report, episode.leftOut),
      },
    ],
    rewards: [
      {
        name: "caculate_reward",
        description: "Runs the task's verifier. The reward is the number that it gives.",
        input: { type: "object", properties: { task_name: { type: "string", description: "The task of the episode" } } },
        score: async ({ state, input, ...context }) => {
          const episode = getEpisode(state);
          const { trial, taskId } = episode;
          const { task } = trial;
          const { task_name } = input as { task_name?: string };
          if (task_name !== undefined && task_name !== taskId && task_name !== task.name)
            throw new Error(`the task of this episode is '${taskId}', not '${task_name}'`);
          const report = await episode.verify(context);
          return scoreOf(task, taskId, report, await testOutput(trial));
        },
      },
    ],
  });
}

/** The tools of the sandbox as the task's user, in its working directory, as long as the agent has time. */
function agentTools(): readonly ToolDefinition<State>[] {
  const tools = sandboxTools<State>({
    cwd: ({ state }) => getEpisode(state).trial.options.cwd ?? undefined,
    user: ({ state }) => getEpisode(state).trial.plan.agent.user?.toString(),
  });
  return [...tools, ...terminalTools(getEpisode)].map((tool) => ({
    ...tool,
    run: (input, context) => {
      const { trial } = getEpisode(context.state);
      if (trial.remainingMs() === 0) throw new Error(`the time for this task is over: ${trial.plan.agent.timeoutSec} seconds`);
      return tool.run(withinTime(input, trial), context);
    },
  }));
}

/** A command ends with the time of the agent. */
function withinTime(input: Readonly<Record<string, unknown>>, trial: Trial): Record<string, unknown> {
  const left = trial.remainingMs();
  if (left === null || !("command" in input)) return { ...input };
  const asked = typeof input.timeout === "number" ? input.timeout : DEFAULT_COMMAND_SEC;
  return { ...input, timeout: Math.min(asked, Math.max(0.001, left / 1_000)) };
}

function priorMessages({ priorContext }: Task): readonly ChatMessage[] {
  return priorContext !== null && "trajectory" in priorContext ? contextMessages(priorContext.trajectory) : [];
}

function getEpisode({ episode }: State): Episode {
  if (episode !== null) return episode;
  throw new Error("this instance has no task: name one when it is created or reset, or set TERMINAL_BENCH_TASK");
}

async function testOutput({ folder, plan }: Trial): Promise<string> {
  const output = plan.name === null ? folder : join(folder, "steps", plan.name);
  return readFile(join(output, "verifier/test-stdout.txt"), "utf8").catch(() => "");
}
