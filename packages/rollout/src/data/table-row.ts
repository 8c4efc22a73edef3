import type { Sample } from "./role-views.ts";
import type { Row } from "./row.ts";

/** A trajectory as a flat row for analysis: numbers and names first, the long texts last, as JSON. Unscored ones have a null reward. */
export function tableRow(trajectory: Sample): Row {
  const { id, run, task, group, seed, attempt, outcome, steps, turns, usage, timing, provenance, messages, tools } = trajectory;
  const isScored = outcome.kind === "scored";
  return {
    id,
    run,
    environment: provenance.environment,
    agent: provenance.agent,
    model: provenance.model,
    task: task.id,
    split: task.split,
    task_index: task.index,
    role: trajectory.role ?? null,
    group_id: group?.id ?? null,
    sample: group?.index ?? null,
    seed,
    attempt,
    scored: isScored,
    reward: isScored ? outcome.reward : null,
    unscored_cause: isScored ? null : outcome.cause,
    unscored_stage: isScored ? null : outcome.stage,
    unscored_message: isScored ? null : outcome.message,
    stop_reason: trajectory.stop_reason,
    truncated: trajectory.truncated,
    turns: turns.length,
    tool_calls: steps.length,
    tool_errors: steps.filter(({ result }) => result.is_error).length,
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    cost: trajectory.cost,
    started_at: timing.started_at,
    total_ms: timing.total_ms,
    model_ms: timing.model_ms,
    tools_ms: timing.tools_ms,
    score_ms: timing.score_ms,
    components: JSON.stringify(isScored ? outcome.components : {}),
    messages: JSON.stringify(messages),
    tools: JSON.stringify(tools),
  };
}
