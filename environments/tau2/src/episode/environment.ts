import { defineEnvironment, type EnvironmentDefinition } from "@aenv/kit";
import type { Domain, DomainDefinition } from "../core/domain.ts";
import { agentCall } from "../core/messages/messages.ts";
import { type ActionResult, Episode } from "./episode.ts";
import { observationOf, promptOf, solutionOf, statusOf } from "./parts.ts";
import type { EpisodeRecord } from "./record.ts";
import { checkNames, DEFAULT_DOMAIN, readSettings, readSolo, shownVariables, type Variables, withDeclared } from "./settings.ts";
import { toolsOfDomain, toolsOfEpisode } from "./tools.ts";

export interface Tau2Options {
  readonly domains: ReadonlyMap<string, DomainDefinition>;
  readonly open: (name: string, dataPath: string) => Domain;
  /** The variables of the process; an instance's own variables override them. */
  readonly variables: Variables;
}

const POLICY_PREVIEW = 500;

/**
 * tau2 as an environment. A process that was started with `TAU2_DOMAIN` serves that domain; one without serves all.
 * The tools and tasks of the environment as a whole are those of an instance without variables.
 */
export function tau2Environment({ domains, open, variables: base }: Tau2Options): EnvironmentDefinition<Episode> {
  checkNames(base);
  const fixed = base.TAU2_DOMAIN || null;
  const served = [...domains.values()].filter(({ name }) => fixed === null || name === fixed);
  const defaultDomain = served.find(({ name }) => name === DEFAULT_DOMAIN) ?? served[0];
  if (defaultDomain === undefined) throw new Error(`TAU2_DOMAIN is '${fixed}'; the domains are ${[...domains.keys()].join(", ")}`);

  const settingsOf = (own: Variables, domain?: unknown, taskId?: string) => {
    const settings = readSettings({ ...base, ...own });
    const chosen = typeof domain === "string" ? domain : settings.domain;
    if (!served.some(({ name }) => name === chosen)) {
      throw new Error(
        `this process does not serve the domain '${chosen}'; set TAU2_DOMAIN to one of ${served.map(({ name }) => name).join(", ")}`,
      );
    }
    return { ...settings, domain: chosen, taskId: taskId ?? settings.taskId };
  };

  const lists = { solo: new WeakMap<Domain, TaskList>(), conversation: new WeakMap<Domain, TaskList>() };
  const tasksOf = (name: string, own: Variables) => {
    const settings = readSettings({ ...base, ...own });
    const domain = open(name, settings.dataPath);
    const isSolo = settings.isSolo ?? domain.definition.soloError === null;
    const known = isSolo ? lists.solo : lists.conversation;
    const list = known.get(domain) ?? listTasks(domain, isSolo);
    known.set(domain, list);
    return list;
  };

  return defineEnvironment({
    setup: ({ task, variables, model, signal }) => {
      const settings = withDeclared(settingsOf(variables, task?.domain, task?.id), model);
      return Episode.open(open(settings.domain, settings.dataPath), settings, signal);
    },
    observe: ({ state }) => state.firstObservation,
    prompt: ({ state }) => promptOf(state),
    reply: async (text, { state, signal }) => {
      const { observation, done } = await state.act({ say: text }, signal);
      return { ...(state.isAnswered && { content: observation }), ...statusOf(state), done };
    },
    hear: (text, { state }) => state.hear(text),
    status: ({ state }) => statusOf(state),
    stepReward: ({ state }) => {
      if (state.failure !== null) throw state.failure;
      return state.rewards.at(-1) ?? 0;
    },
    digest: ({ domain, task, stateHashes, steps, terminationReason }) => ({
      domain: domain.name,
      task: task.id,
      databases: stateHashes,
      steps,
      terminationReason,
    }),
    oracle: ({ state }) => solutionOf(state),
    observation: (result, { state }) => observationOf(result as ActionResult, state),
    tasks: () => tasksOf(defaultDomain.name, {}),
    tasksOf: ({ variables }) => tasksOf(settingsOf(variables).domain, variables),
    snapshot: (episode) => episode.record(),
    restore: (snapshot, { variables, model, signal }) => {
      const record = snapshot as EpisodeRecord;
      const settings = withDeclared(settingsOf(variables, record.domain), model);
      return Episode.restore(open(record.domain, settings.dataPath), settings, record, signal);
    },
    tools: toolsOfDomain(defaultDomain, readSolo(base)),
    toolsOf: toolsOfEpisode,
    functions: [
      { name: "tau2_get_task_info", description: "The task of the episode.", run: (_, { state }) => taskInfo(state) },
      { name: "tau2_get_system_prompt", description: "The system prompt for the agent.", run: (_, { state }) => state.systemPrompt() },
      {
        name: "tau2_get_available_tools",
        description: "The agent's tools, as function schemas for a model.",
        run: (_, { state }) => state.tools(),
      },
      {
        name: "tau2_get_status",
        description: "The progress of the episode.",
        run: (_, { state, variables }) => ({
          step: state.steps,
          max_steps: state.maxSteps,
          done: state.isDone,
          last_observation: state.lastObservation,
          ...scoreOf(state),
          termination_reason: state.terminationReason,
          environment: shownVariables({ ...base, ...variables }),
        }),
      },
      {
        name: "tau2_get_state_hash",
        description: "Digests of the agent's and of the user's database; equal states have equal digests.",
        run: (_, { state }) => {
          const [agent, user] = state.stateHashes;
          return { agent, user };
        },
      },
      {
        name: "tau2_send_message",
        description: "Sends a message to the user and returns the answer.",
        input: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
        run: async ({ message }, { state, signal }) => {
          const { step: _, ...result } = await state.act(String(message), signal);
          return result;
        },
      },
      {
        name: "tau2_done",
        description: "Ends the episode.",
        run: async (_, { state, signal }) => {
          await state.act(agentCall("done"), signal);
          const { total_reward, ...rest } = scoreOf(state);
          return { done: true, total_reward, steps: state.steps, final_observation: state.lastObservation, ...unscoredOf(rest) };
        },
      },
    ],
    rewards: [
      {
        name: "tau2_reward",
        description: "The reward of the episode; 0 until it ends.",
        score: ({ state }) => {
          if (state.failure !== null) throw state.failure;
          return { reward: state.totalReward, ...scoreOf(state), done: state.isDone, steps: state.steps };
        },
      },
    ],
  });
}

function scoreOf({ rewards, totalReward, unscored }: Episode) {
  return { rewards, total_reward: totalReward, ...(unscored === null ? {} : { unscored }) };
}

const unscoredOf = ({ unscored }: { unscored?: string }) => (unscored === undefined ? {} : { unscored });

function taskInfo(episode: Episode) {
  const { task, domain, isSolo, maxSteps } = episode;
  const policy = domain.policy(isSolo);
  return {
    task_id: task.id,
    domain: domain.name,
    ticket: task.ticket,
    tools: episode.tools().map((schema) => (schema.function as { name: string }).name),
    policy_preview: policy.length > POLICY_PREVIEW ? `${policy.slice(0, POLICY_PREVIEW)}...` : policy,
    max_steps: maxSteps,
    solo_mode: isSolo,
  };
}

type TaskList = ReturnType<typeof listTasks>;

/**
 * `split` is the first split of a task other than the default; `splits` has all of them. A ticket is for a solo agent: in a conversation
 * it would tell the agent what only the user knows.
 */
function listTasks(domain: Domain, isSolo: boolean) {
  const { defaultSplit } = domain.definition;
  return domain.tasks.tasks.map(({ id, ticket }) => {
    const splits = [...domain.tasks.splits].filter(([, ids]) => ids.includes(id)).map(([name]) => name);
    const split = splits.find((name) => name !== defaultSplit) ?? splits[0];
    const instruction = ticket === null || !isSolo ? {} : { instruction: ticket };
    return { id, domain: domain.name, splits, ...instruction, ...(split === undefined ? {} : { split }) };
  });
}
