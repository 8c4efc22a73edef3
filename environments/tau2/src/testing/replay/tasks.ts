import { createHash } from "node:crypto";
import { PyError } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import type { Domain } from "../../core/domain.ts";
import type { Environment } from "../../core/environment.ts";
import { goldEnvironment } from "../../core/evaluate/environment.ts";
import { evaluate } from "../../core/evaluate/evaluate.ts";
import type { Message } from "../../core/messages/messages.ts";
import { setState } from "../../core/state.ts";
import { type GoldenAction, printScenario, type Task } from "../../core/tasks.ts";
import type { Dict } from "../../python/values/values.ts";
import { callOf, comparable } from "./calls.ts";
import { dictAt, listAt } from "./vectors.ts";

/** Replays a task's golden actions and grades its synthetic trajectories. */
export async function replayTask(domain: Domain, record: Dict, tally: Tally): Promise<void> {
  const id = textAt(record, "task_id");
  const task = domain.tasks.find(id);
  if (task === undefined) {
    tally.compare("task", id, "no such task", id);
    return;
  }
  const vector = comparable(record);
  tally.compare("fresh_hash", id, domain.create().hashes(), vector.fresh_hash);
  const scenario = createHash("sha256").update(printScenario(task.user_scenario)).digest("hex");
  tally.compare("user_instructions", id, scenario, vector.user_instructions_sha256);
  tally.compare("reward_basis", id, task.evaluation_criteria?.reward_basis ?? null, vector.reward_basis);
  const environment = initialEnvironment(domain, task);
  tally.compare("init_hash", id, environment.hashes(), vector.init_hash);
  tally.compare("env_assertions", `${id} initially`, assertionsOn(environment.fork(), task), vector.env_assertions_initial);
  for (const [i, step] of listAt(record, "steps").entries()) {
    const call = callOf(step);
    const wanted = comparable(step);
    const { content, error } = environment.getResponse(call);
    tally.compare(
      "steps",
      `${id} step ${i}: ${call.name}`,
      [content, error, environment.hashes()],
      [wanted.content, wanted.error, wanted.hash],
    );
  }
  tally.compare("env_assertions", `${id} after golden`, assertionsOn(environment, task), vector.env_assertions_after_golden);
  tally.compare("gold_hash", id, goldEnvironment(domain, task).hashes(), vector.gold_hash);
  for (const [variant, wanted] of dictAt(record, "eval")) {
    await replayEvaluation(domain, task, String(variant), comparable(wanted), tally);
  }
}

function initialEnvironment(domain: Domain, task: Task): Environment {
  const environment = domain.create();
  setState(environment, task.initial_state, task.initial_state?.message_history ?? []);
  return environment;
}

function assertionsOn(environment: Environment, task: Task): (boolean | string)[] {
  return (task.evaluation_criteria?.env_assertions ?? []).map((assertion) => {
    try {
      return environment.runAssertion(assertion);
    } catch (error) {
      if (error instanceof PyError) return `${error.kind}: ${error.message}`;
      throw error;
    }
  });
}

async function replayEvaluation(domain: Domain, task: Task, variant: string, wanted: Record<string, unknown>, tally: Tally): Promise<void> {
  const kind = `eval ${variant}`;
  const actions = actionsOf(domain, task.evaluation_criteria?.actions ?? [], variant);
  if (actions === null) {
    tally.compare(kind, task.id, "unknown variant", variant);
    return;
  }
  const { nl_dropped: isNlDropped, ...outcome } = wanted;
  const graded = isNlDropped === true ? withoutNl(task) : task;
  const speaks = variant !== "golden_silent" && variant !== "nothing";
  const trajectory = trajectoryOf(domain, graded, actions, speaks);
  tally.compare(kind, task.id, await outcomeOf(domain, graded, trajectory), outcome);
}

function withoutNl(task: Task): Task {
  const criteria = task.evaluation_criteria;
  if (criteria === null) return task;
  const reward_basis = criteria.reward_basis.filter((type) => type !== "NL_ASSERTION");
  return { ...task, evaluation_criteria: Object.assign(Object.create(Object.getPrototypeOf(criteria)), criteria, { reward_basis }) };
}

/** What is done of the golden actions in a variant of the vectors; null for an unknown one. */
export function actionsOf<Action extends { readonly name: string }>(
  domain: Domain,
  golden: readonly Action[],
  variant: string,
): readonly Action[] | null {
  switch (variant) {
    case "golden":
    case "golden_silent":
      return golden;
    case "nothing":
      return [];
    case "twice":
      return [...golden, ...golden];
    case "drop_last_write": {
      const { agent, user } = domain.definition;
      const writing = [...agent.toolkit.tools, ...(user?.toolkit.tools ?? [])].filter(({ kind }) => kind === "write");
      const last = golden.findLastIndex(({ name }) => writing.some((tool) => tool.name === name));
      return golden.filter((_, i) => i !== last);
    }
    default:
      return null;
  }
}

/** Each action as a message with its answer, then the required information, then the user's stop. */
function trajectoryOf(domain: Domain, task: Task, actions: readonly GoldenAction[], speaks: boolean): Message[] {
  const environment = initialEnvironment(domain, task);
  const messages: Message[] = [...(task.initial_state?.message_history ?? [])];
  for (const [i, { name, requestor, arguments: args }] of actions.entries()) {
    const call = { id: `replay_${i}`, name, requestor, arguments: args };
    messages.push({ role: requestor, content: null, tool_calls: [call] }, environment.getResponse(call));
  }
  const infos = task.evaluation_criteria?.communicate_info ?? [];
  if (speaks && infos.length > 0) messages.push({ role: "assistant", content: infos.join(" "), tool_calls: null });
  messages.push({ role: "user", content: "###STOP###", tool_calls: null });
  return messages;
}

/** The parts of an outcome that the vectors record. */
async function outcomeOf(domain: Domain, task: Task, trajectory: readonly Message[]): Promise<unknown> {
  try {
    const info = await evaluate({ domain, task, trajectory, terminationReason: "user_stop" });
    if (info.reward === null || !("reward_breakdown" in info)) return info;
    return {
      reward: info.reward,
      breakdown: info.reward_breakdown,
      db_match: info.db_check?.db_match ?? null,
      env_assertions: (info.env_assertions ?? []).map(({ met }) => met),
      action_match: (info.action_checks ?? []).map(({ action_match }) => action_match),
      communicate: (info.communicate_checks ?? []).map(({ met }) => met),
    };
  } catch (error) {
    if (error instanceof PyError) return { exception: `${error.kind}: ${error.message}` };
    throw error;
  }
}
