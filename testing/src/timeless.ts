const TIMES = /^(?:started_at|created_at|.*_ms)$/;

/**
 * The JSON text of a trajectory without what differs between two equal runs: times, and the ids that the model's endpoint gives to its
 * answers.
 */
export function timeless(trajectory: object): string {
  return JSON.stringify(trajectory, (key, value: unknown) => (TIMES.test(key) || key === "completion_id" ? undefined : value));
}
