import { list, object } from "../fields/containers.ts";
import { type Field, InvalidValue, optional, refine, withDefault } from "../fields/field.ts";
import { oneOf, text } from "../fields/scalars.ts";
import { type AtifStep, agent, extra, finalMetrics, step } from "./schema.ts";

/** From the oldest one to the one that later releases write. */
export const KNOWN_VERSIONS = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((minor) => `ATIF-v1.${minor}`);

export interface AtifTrajectory {
  readonly schema_version: string;
  readonly session_id: string | null;
  readonly trajectory_id: string | null;
  readonly agent: ReturnType<typeof agent.parse>;
  readonly steps: readonly AtifStep[];
  readonly notes: string | null;
  readonly final_metrics: ReturnType<typeof finalMetrics.parse> | null;
  readonly continued_trajectory_ref: string | null;
  readonly subagent_trajectories: readonly AtifTrajectory[] | null;
  readonly extra: Readonly<Record<string, unknown>> | null;
}

/** Checks a document of the agent trajectory interchange format. Throws `InvalidValue`. */
export function parseTrajectory(document: unknown, versions: readonly string[] = KNOWN_VERSIONS): AtifTrajectory {
  return trajectoryField(versions).parse(document, "");
}

function trajectoryField(versions: readonly string[]): Field<AtifTrajectory> {
  const fields: Field<AtifTrajectory> = object(
    {
      schema_version: withDefault(oneOf(...versions), "ATIF-v1.7"),
      session_id: optional(text),
      trajectory_id: optional(text),
      agent,
      steps: list(step),
      notes: optional(text),
      final_metrics: optional(finalMetrics),
      continued_trajectory_ref: optional(text),
      // Built when it is needed: the format contains itself.
      subagent_trajectories: optional<readonly AtifTrajectory[]>({
        parse: (value, at) => list(trajectoryField(versions)).parse(value, at),
      }),
      extra,
    },
    "forbid",
  );
  return refine(fields, (trajectory, at) => {
    checkStepIds(trajectory.steps, at);
    checkEmbedded(trajectory.subagent_trajectories ?? [], at);
    return trajectory;
  });
}

function checkStepIds(steps: readonly AtifStep[], at: string): void {
  if (steps.length === 0) throw new InvalidValue(`${at}.steps`, "a trajectory has at least one step");
  for (const [i, { step_id }] of steps.entries()) {
    if (step_id !== i + 1) throw new InvalidValue(`${at}.steps[${i}].step_id`, `expected ${i + 1}, got ${step_id}`);
  }
}

function checkEmbedded(trajectories: readonly AtifTrajectory[], at: string): void {
  const ids = new Set<string>();
  for (const { trajectory_id } of trajectories) {
    if (trajectory_id === null) throw new InvalidValue(`${at}.subagent_trajectories`, "an embedded trajectory needs a trajectory_id");
    if (ids.has(trajectory_id)) throw new InvalidValue(`${at}.subagent_trajectories`, `two have the trajectory_id '${trajectory_id}'`);
    ids.add(trajectory_id);
  }
}
