import type { Trajectory } from "@aenv/contract";

/** What two trajectories of the same episode have alike if they are equal: everything but times, names and what made them. */
export function comparable({ task, seed, messages, tools, steps, roles, outcome, stop_reason }: Trajectory) {
  return {
    task: task.id,
    seed,
    tools,
    messages,
    steps: steps.map(({ started_ms: _, duration_ms: __, ...step }) => step),
    ...(roles && {
      roles: Object.fromEntries(Object.entries(roles).map(([role, { messages, outcome }]) => [role, { messages, outcome }])),
    }),
    outcome,
    stop_reason,
  };
}
