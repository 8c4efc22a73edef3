import { planEpisodes } from "@aenv/rollout";
import type { ModelRequest, ScriptedTurn } from "@aenv/testing";
import { openDomain } from "../../domains/index.ts";
import { actionsOf } from "../../testing/replay/tasks.ts";
import { dataPath, type GoldenStep, type GoldenTask } from "./golden-task.ts";
import { blocksOf } from "./play.ts";
import { GOODBYE, requestFor } from "./scripted-models.ts";

export const AGENT = "scripted-agent";

/** One episode of a run: a task, and what the agent does of the task's golden actions. */
export interface ScriptedEpisode {
  readonly task: GoldenTask;
  readonly steps: readonly GoldenStep[];
  /** Written beside the first call. */
  readonly firstWords: string;
  readonly lastWords: string;
  readonly reward: number;
}

/** The episodes of a run by their seed: sample `i` of a task is the variant `i`, or the golden actions where the vectors lack it. */
export function episodesBySeed(tasks: readonly GoldenTask[], variants: readonly string[]): Map<number, ScriptedEpisode> {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const plan = planEpisodes({ run: "any", tasks, samples: variants.length, seed: 0 });
  return new Map([...plan].map(({ seed, task, group }) => [seed, episodeOf(byId.get(task.id ?? "") as GoldenTask, variants[group.index])]));
}

function episodeOf(task: GoldenTask, wanted = "golden"): ScriptedEpisode {
  const variant = task.rewards[wanted] === undefined ? "golden" : wanted;
  const infos = variant === "golden_silent" || variant === "nothing" ? [] : task.infos;
  // What is written beside a call counts as communicated, too.
  const isBeside = variant === "twice" && task.steps[0]?.requestor === "assistant";
  return {
    task,
    steps: actionsOf(openDomain(task.domain, dataPath), task.steps, variant) ?? [],
    firstWords: isBeside ? infos.join(" ") : "",
    lastWords: [GOODBYE, ...(isBeside ? [] : infos)].join(" "),
    reward: task.rewards[variant] ?? Number.NaN,
  };
}

/** The agent's next message: its next tool call, a request to the user for the user's own calls, or its last words. */
export function scriptedAgent({ body, turn }: ModelRequest, episodes: ReadonlyMap<number, ScriptedEpisode>): ScriptedTurn {
  const episode = episodes.get(Number(body.seed));
  if (episode === undefined) throw new Error(`no episode has the seed ${String(body.seed)}`);
  const at = turn - episode.task.openingTurns;
  const block = blocksOf(episode.steps)[at];
  if (block === undefined) return episode.lastWords;
  const [first] = block as [GoldenStep];
  if (first.requestor === "user") return requestFor(block);
  const text = at === 0 ? episode.firstWords : "";
  return { text, toolCalls: [{ id: `call_${turn}`, name: first.name, arguments: first.argumentsText }] };
}
