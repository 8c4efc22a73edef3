import { isObject, type OracleAction, type Task } from "@aenv/contract";
import { toReward } from "@aenv/sdk";
import { type Check, need, needEpisodes, needOneAgent, type Subject } from "./check.ts";
import { act, digestOf, oracleOf, reset, SEED } from "./episode.ts";
import { NotOffered, Violation } from "./violation.ts";
import { cut } from "./wire.ts";

/** Reward and state after each action of an episode. */
interface Played {
  readonly reward: number;
  readonly digests: readonly (string | null)[];
}

/** What every environment with episodes owes. */
export const playChecks: readonly Check[] = [
  {
    name: "its oracle reaches the pass reward in every task that is played",
    run: async (subject) => {
      needOneAgent(subject);
      need(subject, "oracle");
      const played: string[] = [];
      for (const task of playedTasks(subject)) {
        const solution = await solve(subject, task);
        if (solution === null) continue;
        const { reward } = await play(subject, task, solution);
        if (reward < subject.passReward)
          throw new Violation(
            `the actions of GET /episode/oracle get ${reward} in ${nameOf(task)}, and ${subject.passReward} is needed; if that is the most, say so with --pass-reward`,
          );
        played.push(`${task?.id ?? "no task"} ${reward}`);
      }
      if (played.length === 0) throw new NotOffered("its oracle knows no solution of these tasks");
      return cut(played.join(", "));
    },
  },
  {
    name: "an agent that does nothing stays below the pass reward",
    run: async (subject) => {
      needOneAgent(subject);
      needEpisodes(subject);
      for (const task of playedTasks(subject)) {
        await reset(subject.wire, task);
        const reward = await score(subject);
        if (reward === null) throw new NotOffered("it has no reward before an agent has acted");
        if (reward >= subject.passReward)
          throw new Violation(`the reward of ${nameOf(task)} is ${reward} before an agent has done anything`);
      }
      return undefined;
    },
  },
  {
    name: "the same actions lead to the same digests and the same reward again",
    run: async (subject) => {
      needOneAgent(subject);
      need(subject, "oracle");
      let actions = 0;
      for (const task of playedTasks(subject)) {
        const solution = await solve(subject, task);
        if (solution === null) continue;
        const [first, second] = [await play(subject, task, solution), await play(subject, task, solution)];
        const at = first.digests.findIndex((digest, index) => digest !== second.digests[index]);
        if (at >= 0) throw new Violation(`in ${nameOf(task)}, the state after action ${at + 1} has another digest when it is played again`);
        if (first.reward !== second.reward)
          throw new Violation(`in ${nameOf(task)}, the reward is ${first.reward}, and ${second.reward} when it is played again`);
        actions += solution.length;
      }
      if (actions === 0) throw new NotOffered("its oracle knows no solution of these tasks");
      return `${actions} actions${subject.abilities?.digest === true ? "" : ", of which only the reward can be compared"}`;
    },
  },
];

function playedTasks({ tasks }: Subject): readonly (Task | null)[] {
  return tasks.length === 0 ? [null] : tasks;
}

async function solve(subject: Subject, task: Task | null): Promise<readonly OracleAction[] | null> {
  await reset(subject.wire, task, SEED);
  return oracleOf(subject);
}

async function play(subject: Subject, task: Task | null, actions: readonly OracleAction[]): Promise<Played> {
  await reset(subject.wire, task, SEED);
  const digests: (string | null)[] = [];
  for (const action of actions) {
    await act(subject, action);
    digests.push(await digestOf(subject));
  }
  const reward = await score(subject);
  if (reward === null) throw new Violation("POST /task/reward does not score a solved task");
  return { reward, digests };
}

/** Null if there is no score. */
async function score({ wire }: Subject): Promise<number | null> {
  const { status, json } = await wire.send("POST", "/task/reward", {});
  return status === 200 && isObject(json) ? toReward(json.data, "it").reward : null;
}

function nameOf(task: Task | null): string {
  return task === null ? "an episode" : `the task '${task.id}'`;
}
