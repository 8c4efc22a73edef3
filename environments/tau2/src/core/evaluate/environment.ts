import { PyError } from "@aenv/benchmark";
import type { Domain } from "../domain.ts";
import type { Environment } from "../environment.ts";
import type { Message } from "../messages/messages.ts";
import { setState } from "../state.ts";
import type { RewardType, Task } from "../tasks.ts";
import { type AssertionCheck, asReward, type RewardInfo } from "./reward.ts";

export interface EnvironmentEvaluation {
  readonly domain: Domain;
  readonly task: Task;
  readonly trajectory: readonly Message[];
  readonly isSolo: boolean;
  readonly isStrict: boolean;
}

/** Compares an episode's final databases with those after the golden actions, and checks the task's assertions. */
export function evaluateEnvironment({ domain, task, trajectory, isSolo, isStrict }: EnvironmentEvaluation): RewardInfo {
  const criteria = task.evaluation_criteria;
  if (criteria === null || (criteria.actions === null && criteria.env_assertions === null)) {
    const note = "No expected actions or env assertions";
    return { reward: 1, db_check: { db_match: true, db_reward: 1 }, reward_basis: ["DB"], info: { note } };
  }
  const predicted = domain.create({ isSolo });
  setState(predicted, task.initial_state, trajectory, isStrict);
  const gold = goldEnvironment(domain, task, isStrict);
  const isMatch = sameHashes(predicted, gold);
  const env_assertions = (criteria.env_assertions ?? []).map((assertion): AssertionCheck => {
    const met = predicted.runAssertion(assertion);
    return { env_assertion: assertion, met, reward: asReward(met) };
  });
  const rewards: [RewardType, number][] = [
    ["DB", asReward(isMatch)],
    ["ENV_ASSERTION", asReward(env_assertions.every(({ met }) => met))],
  ];
  const used = rewards.filter(([type]) => criteria.reward_basis.includes(type));
  return {
    reward: used.reduce((product, [, reward]) => product * reward, 1),
    db_check: { db_match: isMatch, db_reward: asReward(isMatch) },
    env_assertions,
    reward_basis: criteria.reward_basis,
    reward_breakdown: Object.fromEntries(used),
  };
}

/** The environment after the golden actions: never solo, and not synced between the actions. */
export function goldEnvironment(domain: Domain, task: Task, isStrict = true): Environment {
  const gold = domain.create();
  setState(gold, task.initial_state, task.initial_state?.message_history ?? [], isStrict);
  for (const { name, requestor, arguments: args } of task.evaluation_criteria?.actions ?? []) {
    try {
      gold.makeToolCall(name, requestor, args);
    } catch (error) {
      // Some golden actions fail on purpose.
      if (!(error instanceof PyError)) throw error;
    }
  }
  return gold;
}

function sameHashes(a: Environment, b: Environment): boolean {
  const [agent, user] = a.hashes();
  const [otherAgent, otherUser] = b.hashes();
  return agent === otherAgent && user === otherUser;
}
