import { PyError } from "@aenv/benchmark";
import type { Domain } from "../domain.ts";
import type { Message } from "../messages/messages.ts";
import type { RewardType, Task } from "../tasks.ts";
import type { ToolKind } from "../tools/tool.ts";
import { evaluateActions } from "./actions.ts";
import { evaluateCommunicate } from "./communicate.ts";
import { evaluateEnvironment } from "./environment.ts";
import { evaluateNlAssertions, type Judge, needsJudge } from "./nl-assertions.ts";
import type { RewardInfo, Unscored } from "./reward.ts";

export interface Evaluation {
  readonly domain: Domain;
  readonly task: Task;
  /** The whole conversation, beginning with the task's message history. */
  readonly trajectory: readonly Message[];
  readonly terminationReason: string;
  readonly isSolo?: boolean;
  /** Whether a replay must reproduce the recorded results; stored trajectories are graded leniently. */
  readonly isStrict?: boolean;
  /** Judge of natural-language assertions; without it, tasks that need it are unscored. */
  readonly judge?: Judge | null;
  readonly signal?: AbortSignal | undefined;
}

const FINISHED = new Set(["agent_stop", "user_stop"]);

/** The reward of an episode: the product of the components that the task's reward basis names. */
export async function evaluate(evaluation: Evaluation): Promise<RewardInfo | Unscored> {
  const { domain, task, trajectory, terminationReason, isSolo = false, isStrict = true, judge = null, signal } = evaluation;
  if (!FINISHED.has(terminationReason)) {
    const note = `Simulation terminated prematurely. Termination reason: ${terminationReason}`;
    return { reward: 0, reward_basis: null, info: { note } };
  }
  const criteria = task.evaluation_criteria;
  if (criteria === null) return { reward: 1, reward_basis: null, info: { note: "No evaluation criteria" } };
  const basis = criteria.reward_basis;
  const wantsNl = basis.includes("NL_ASSERTION");
  if (wantsNl && judge === null && needsJudge(task)) {
    const problem = `task '${task.id}' is scored by natural-language assertions, and no judge model is configured`;
    return { reward: null, reason: `${problem}: set TAU2_JUDGE_LLM, TAU2_JUDGE_LLM_API_BASE and TAU2_JUDGE_LLM_API_KEY` };
  }
  const environment = evaluateEnvironment({ domain, task, trajectory, isSolo, isStrict });
  const action = evaluateActions(task, trajectory, toolKinds(domain, isSolo));
  const communicate = evaluateCommunicate(task, trajectory);
  const nl = wantsNl ? await evaluateNlAssertions(task, trajectory, judge, signal) : null;
  const used = [
    includesAny(basis, "DB", "ENV_ASSERTION") ? environment : null,
    includesAny(basis, "ACTION") ? action : null,
    nl,
    includesAny(basis, "COMMUNICATE") ? communicate : null,
  ].filter((component) => component !== null);
  return {
    reward: used.reduce((product, component) => product * component.reward, 1),
    ...(environment.db_check === undefined ? {} : { db_check: environment.db_check }),
    ...(environment.env_assertions === undefined ? {} : { env_assertions: environment.env_assertions }),
    action_checks: action.action_checks ?? null,
    nl_assertions: nl?.nl_assertions ?? null,
    communicate_checks: communicate.communicate_checks ?? null,
    reward_basis: basis,
    reward_breakdown: Object.assign({}, ...used.map(({ reward_breakdown }) => reward_breakdown)),
    info: { env: environment.info ?? null, nl: nl?.info ?? null, communicate: communicate.info ?? null, action: action.info ?? null },
  };
}

function includesAny(basis: readonly RewardType[], ...types: readonly RewardType[]): boolean {
  return types.some((type) => basis.includes(type));
}

/** The kinds of the listed tools; null where the environment cannot be built. */
function toolKinds(domain: Domain, isSolo: boolean): ReadonlyMap<string, ToolKind> | null {
  try {
    const { tools, userTools } = domain.create({ isSolo });
    return new Map([...(tools?.listTools() ?? []), ...(userTools?.listTools() ?? [])].map(({ name, kind }) => [name, kind]));
  } catch (error) {
    if (error instanceof PyError) return null;
    throw error;
  }
}
