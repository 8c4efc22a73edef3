import {
  type Outcome,
  PlatformError,
  type RolloutRequest,
  type RolloutResult,
  rolloutResult,
  TRAJECTORY_FORMAT,
  type Trajectory,
  type Turn,
} from "@aenv/contract";
import { captureOf, mergeTurns } from "@aenv/rollout";
import type { RolloutRow, RolloutWork } from "./row.ts";

/** A trajectory in the form that trainers read. A result without tokens never looks trainable: it has no token arrays at all. */
export function resultOf(trajectory: Trajectory, { model, players = {} }: RolloutRequest): RolloutResult {
  const { format: _, parent: __, steps, turns, outcome, roles, ...rest } = trajectory;
  const modelsOf = (given: (typeof players)[string] | undefined) => (given === undefined ? [] : [given].flat().map((one) => one.model));
  const models = [model, ...Object.values(players).flatMap(modelsOf)];
  const clean = (one: Outcome): Outcome =>
    one.kind === "unscored" ? { ...one, message: models.reduce((text, known) => withoutSecrets(text, known), one.message) } : one;
  // Only what is trained counts: a frozen opponent may be any endpoint.
  const isTrained = ({ role }: Turn) => role === undefined || roles?.[role]?.trainable === true;
  const trained = turns.filter(isTrained);
  const ofTrained =
    roles === undefined ? [model] : Object.values(roles).flatMap((one) => (one.trainable ? modelsOf(players[one.player]) : []));
  const isTrainers = ofTrained.some((known) => known?.tokens === "trainer");
  const capture = isTrainers ? "text" : roles === undefined ? trajectory.capture : captureOf(trained);
  const hasTokens = capture === "tokens";
  return {
    ...rest,
    ...(roles && {
      roles: Object.fromEntries(Object.entries(roles).map(([name, role]) => [name, { ...role, outcome: clean(role.outcome) }])),
    }),
    outcome: clean(outcome),
    capture,
    num_turns: turns.length,
    tool_calls: steps.length,
    turns: turns.map((turn) => {
      const messages = turn.role === undefined ? trajectory.messages : (roles?.[turn.role]?.messages ?? []);
      const own = steps.filter(({ role, message }) => role === turn.role && message === turn.message);
      return {
        ...turn,
        ...(!(hasTokens && isTrained(turn)) && { prompt_token_ids: null, completion_token_ids: null, logprobs: null, weight_versions: [] }),
        message: turn.message === null ? null : (messages[turn.message] ?? null),
        reward: sumOf(own.flatMap(({ reward }) => (reward === null ? [] : [reward]))),
      };
    }),
    sequences: hasTokens ? mergeTurns(trained) : [],
  };
}

/** The result of a rollout that ended without being played. */
export function unplayedResult(row: RolloutRow, work: RolloutWork, outcome: RolloutResult["outcome"], at: Date): RolloutResult {
  const { request, environment, environmentDigest } = work;
  const trajectory: Trajectory = {
    format: TRAJECTORY_FORMAT,
    id: row.id,
    run: row.run,
    attempt: row.attempt,
    task: { id: null, split: null, index: null, ...request.task },
    group: request.group ?? null,
    parent: null,
    seed: request.seed,
    messages: [],
    tools: [],
    steps: [],
    turns: [],
    ...(request.reward_args && { reward_args: request.reward_args }),
    outcome,
    stop_reason: "error",
    truncated: false,
    capture: "text",
    usage: { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0 },
    cost: null,
    timing: { started_at: at.toISOString(), total_ms: 0, start_ms: 0, reset_ms: 0, model_ms: 0, tools_ms: 0, score_ms: 0 },
    provenance: {
      environment,
      environment_digest: environmentDigest,
      tools_digest: null,
      ...(work.configDigest !== undefined && { config_digest: work.configDigest }),
      agent: request.players === undefined ? request.agent.kind : "players",
      agent_digest: null,
      model: request.model?.name ?? null,
      engine: null,
      isolation: null,
      server_version: null,
      client_version: "",
    },
    metadata: request.metadata,
  };
  return resultOf(trajectory, request);
}

const names: ReadonlySet<string> = new Set(Object.keys(rolloutResult.shape));

/** The fields that `?fields=outcome,sequences` names; null for all. */
export function parseFields(text: string | undefined): ReadonlySet<string> | null {
  if (text === undefined || text === "") return null;
  const fields = text.split(",").map((field) => field.trim());
  const unknown = fields.find((field) => !names.has(field));
  if (unknown === undefined) return new Set(["id", ...fields]);
  throw new PlatformError("request.invalid", `fields names '${unknown}'; a result has ${[...names].join(", ")}`);
}

/** The endpoint's own words may repeat a key that it was sent. */
function withoutSecrets(message: string, model: RolloutRequest["model"]): string {
  if (model === null || model === undefined) return message;
  const secrets = [model.api_key, ...Object.values(model.headers)].filter((one) => one.length >= 4 && one !== "none");
  return secrets.reduce((text, secret) => text.replaceAll(secret, "***"), message);
}

function sumOf(rewards: readonly number[]): number | null {
  return rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0);
}
