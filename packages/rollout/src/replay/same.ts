import type { Trajectory } from "@aenv/contract";

/** What two trajectories of the same episode have alike if they are equal: everything but times, names and what made them. */
export function comparable({ task, seed, messages, tools, steps, outcome, stop_reason }: Trajectory) {
  return {
    task: task.id,
    seed,
    tools,
    messages,
    steps: steps.map(({ started_ms: _, duration_ms: __, ...step }) => step),
    outcome,
    stop_reason,
  };
}
