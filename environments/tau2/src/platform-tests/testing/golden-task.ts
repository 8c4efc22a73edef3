import { join } from "node:path";
import { strip } from "@aenv/benchmark";
import { textAt } from "@aenv/benchmark/testing";
import { tau2Path } from "@aenv/testing";
import { openDomain } from "../../domains/index.ts";
import { writeJson } from "../../python/json/writer.ts";
import type { Dict } from "../../python/values/values.ts";
import { comparable } from "../../testing/replay/calls.ts";
import { dictAt, listAt, readFormat } from "../../testing/replay/vectors.ts";

export const dataPath = join(tau2Path, "data");

export type Hashes = readonly [agent: string | null, user: string | null];

export interface GoldenStep {
  readonly name: string;
  readonly requestor: "assistant" | "user";
  /** JSON text, which keeps ints and floats apart. */
  readonly argumentsText: string;
  /** The result of the reference's tool, and the hashes after it. */
  readonly content: string;
  readonly hashes: Hashes;
}

/** A task with the reference's actions and results. */
export interface GoldenTask {
  readonly domain: string;
  readonly id: string;
  readonly initialHashes: Hashes;
  readonly steps: readonly GoldenStep[];
  /** The information that the agent must communicate. */
  readonly infos: readonly string[];
  readonly reward: number;
  /** The reference's reward of each variant of the golden actions that the vectors have. */
  readonly rewards: Readonly<Record<string, number>>;
  /** Messages of the agent that the conversation begins with. */
  readonly openingTurns: number;
  /** Null if the vectors do not have it. */
  readonly rewardForNothing: number | null;
  readonly needsJudge: boolean;
}

/** The tasks whose vectors have these variants: all, or `limit` of them, evenly spread. */
export function goldenTasks(domain: string, limit = Number.POSITIVE_INFINITY, variants: readonly string[] = []): GoldenTask[] {
  const fitting = allGoldenTasks(domain).filter(({ rewards }) => variants.every((variant) => rewards[variant] !== undefined));
  const count = Math.min(limit, fitting.length);
  return Array.from({ length: count }, (_, i) => fitting[Math.floor((i * fitting.length) / count)] as GoldenTask);
}

const known = new Map<string, readonly GoldenTask[]>();

/** Read once: the vectors of telecom take a second. */
function allGoldenTasks(domain: string): readonly GoldenTask[] {
  const found = known.get(domain);
  if (found !== undefined) return found;
  const { folder = domain } = openDomain(domain, dataPath).definition;
  const vectors = readFormat(join(tau2Path, "golden", `tasks.${folder}.jsonl.gz`));
  if (vectors.format !== "tasks") throw new Error(`the vectors of ${folder} have no tasks`);
  const tasks = vectors.records.map((record) => goldenTask(domain, record));
  known.set(domain, tasks);
  return tasks;
}

function goldenTask(domain: string, record: Dict): GoldenTask {
  const id = textAt(record, "task_id");
  const task = openDomain(domain, dataPath).tasks.find(id);
  const criteria = task?.evaluation_criteria ?? null;
  const history = task?.initial_state?.message_history ?? [];
  const {
    eval: outcomes,
    init_hash,
    gold_hash,
  } = comparable(record) as {
    eval: Record<string, { reward?: number }>;
    init_hash: Hashes;
    gold_hash: Hashes;
  };
  const infos = criteria?.communicate_info ?? [];
  const basis = criteria?.reward_basis ?? [];
  const mustCommunicate = basis.includes("COMMUNICATE") && infos.length > 0;
  // If the outcome is not recorded, it follows from the hashes before and after the golden actions.
  const isByHashes = !basis.includes("ACTION") && !basis.includes("ENV_ASSERTION");
  const derived = isByHashes ? Number(String(init_hash) === String(gold_hash) && !mustCommunicate) : null;
  return {
    domain,
    id,
    initialHashes: init_hash,
    steps: listAt(record, "steps").map((step) => goldenStep(step as Dict)),
    infos,
    reward: outcomes.golden?.reward ?? Number.NaN,
    rewards: Object.fromEntries(
      Object.entries(outcomes).flatMap(([variant, { reward }]) => (reward === undefined ? [] : [[variant, reward]])),
    ),
    openingTurns: history.length === 0 ? 1 : history.filter(({ role }) => role === "assistant").length,
    rewardForNothing: outcomes.nothing?.reward ?? derived,
    needsJudge: basis.includes("NL_ASSERTION") && (criteria?.nl_assertions ?? []).length > 0,
  };
}

function goldenStep(step: Dict): GoldenStep {
  const { name, requestor, content, hash } = comparable(step) as {
    name: string;
    requestor: "assistant" | "user";
    content: string;
    hash: Hashes;
  };
  return { name, requestor, argumentsText: writeJson(dictAt(step, "args")), content: strip(content), hashes: hash };
}
