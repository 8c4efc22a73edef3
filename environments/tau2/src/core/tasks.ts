import { indent, valueError } from "@aenv/benchmark";
import { any, bool, dict, list, literal, nullable, text, withDefault } from "../python/model/field-types.ts";
import { type Instance, model, type Type } from "../python/model/model.ts";
import { repr } from "../python/repr.ts";
import { Dict, type PyValue } from "../python/values/values.ts";
import { parseMessage } from "./messages/stored.ts";
import type { InitialState } from "./state.ts";

const optional = <T extends PyValue>(type: Type<T>) => withDefault(nullable(type), null);

const StructuredInstructions = model("StructuredUserInstructions", {
  domain: text,
  reason_for_call: text,
  known_info: optional(text),
  unknown_info: optional(text),
  task_instructions: text,
});

const FunctionCallModel = model("EnvFunctionCall", { env_type: literal("user", "assistant"), func_name: text, arguments: dict(any) });

const ActionModel = model("Action", {
  action_id: text,
  requestor: withDefault(literal("user", "assistant"), "assistant"),
  name: text,
  arguments: dict(any),
  info: optional(text),
  compare_args: optional(list(text)),
});

/** Instructions for the user simulator: structured, or plain text. */
const instructions: Type<string | Instance<typeof StructuredInstructions>> = {
  read: (input, report) => (typeof input === "string" ? input : StructuredInstructions.read(input, report)),
};

export const REWARD_TYPES = ["DB", "ENV_ASSERTION", "NL_ASSERTION", "ACTION", "COMMUNICATE"] as const;
export type RewardType = (typeof REWARD_TYPES)[number];

const TaskModel = model("Task", {
  id: text,
  description: withDefault(any, null),
  user_scenario: model("UserScenario", { persona: optional(text), instructions }),
  ticket: optional(text),
  initial_state: optional(
    model("InitialState", {
      initialization_data: optional(model("InitializationData", { agent_data: optional(dict(any)), user_data: optional(dict(any)) })),
      initialization_actions: optional(list(FunctionCallModel)),
      message_history: optional(list(any)),
    }),
  ),
  evaluation_criteria: optional(
    model("EvaluationCriteria", {
      actions: optional(list(ActionModel)),
      env_assertions: optional(
        list(model("EnvAssertion", { ...FunctionCallModel.fields, assert_value: withDefault(bool, true), message: optional(text) })),
      ),
      communicate_info: optional(list(text)),
      nl_assertions: optional(list(text)),
      reward_basis: withDefault(list(literal(...REWARD_TYPES)), () => ["DB", "COMMUNICATE"]),
    }),
  ),
  user_tools: optional(list(text)),
});

export type GoldenAction = Instance<typeof ActionModel>;
export type UserScenario = Instance<typeof TaskModel>["user_scenario"];
export type EvaluationCriteria = NonNullable<Instance<typeof TaskModel>["evaluation_criteria"]>;

export interface Task {
  readonly id: string;
  readonly description: PyValue;
  readonly user_scenario: UserScenario;
  readonly ticket: string | null;
  readonly initial_state: InitialState | null;
  readonly evaluation_criteria: EvaluationCriteria | null;
  /** The user's tools by name; null means all. */
  readonly user_tools: readonly string[] | null;
}

export function parseTask(value: PyValue): Task {
  const { id, description, user_scenario, ticket, initial_state, evaluation_criteria, user_tools } = TaskModel.validate(value);
  const state =
    initial_state === null ? null : { ...initial_state, message_history: initial_state.message_history?.map(parseMessage) ?? null };
  return { id, description, user_scenario, ticket, initial_state: state, evaluation_criteria, user_tools };
}

/** The scenario as the user simulator gets it. */
export function printScenario({ persona, instructions }: UserScenario): string {
  const head = persona === null ? "" : `Persona:\n${indent(persona, "\t")}\n`;
  return `${head}Instructions:\n${indent(typeof instructions === "string" ? instructions : printInstructions(instructions), "\t")}`;
}

function printInstructions(given: Instance<typeof StructuredInstructions>): string {
  const section = (title: string, body: string | null): string[] => (body === null ? [] : [`${title}:\n${indent(body, "\t")}`]);
  return [
    `Domain: ${given.domain}`,
    ...section("Reason for call", given.reason_for_call),
    ...section("Known info", given.known_info),
    ...section("Unknown info", given.unknown_info),
    ...section("Task instructions", given.task_instructions),
  ].join("\n");
}

/** A domain's tasks in file order, and which of them belong to which split. */
export class TaskSet {
  readonly tasks: readonly Task[];
  readonly splits: ReadonlyMap<string, readonly string[]>;
  readonly #byId: ReadonlyMap<string, Task>;

  constructor(tasks: readonly Task[], splits: ReadonlyMap<string, readonly string[]>) {
    this.tasks = tasks;
    this.splits = splits;
    this.#byId = new Map(tasks.map((task) => [task.id, task]));
  }

  /** The tasks of a split; null means all. */
  select(split: string | null): readonly Task[] {
    if (split === null) return this.tasks;
    const ids = this.splits.get(split);
    if (ids === undefined) {
      throw valueError(`Invalid task split name: ${split}. Valid splits are: dict_keys(${repr([...this.splits.keys()])})`);
    }
    const chosen = new Set(ids);
    return this.tasks.filter(({ id }) => chosen.has(id));
  }

  find(id: string): Task | undefined {
    return this.#byId.get(id);
  }
}

/** Reads `tasks.json` and `split_tasks.json`. */
export function parseTaskSet(tasks: PyValue, splits: PyValue): TaskSet {
  if (!Array.isArray(tasks)) throw new Error("a file of tasks must contain a list");
  const named = splits instanceof Dict ? [...splits] : [];
  return new TaskSet(tasks.map(parseTask), new Map(named.map(([name, ids]) => [String(name), Array.isArray(ids) ? ids.map(String) : []])));
}
