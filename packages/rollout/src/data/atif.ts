import { atifSteps, type Trajectory } from "@aenv/contract";
import { trainingTools } from "./chat-rows.ts";

/** The version that Harbor 0.25 writes. */
const VERSION = "ATIF-v1.8";

/** A trajectory in the agent trajectory interchange format. */
export function toAtif(trajectory: Trajectory): Record<string, unknown> {
  const { tools, provenance, outcome } = trajectory;
  return {
    schema_version: VERSION,
    ...(trajectory.run !== null && { session_id: trajectory.run }),
    trajectory_id: trajectory.id,
    agent: {
      name: provenance.agent,
      version: provenance.client_version,
      ...(provenance.model !== null && { model_name: provenance.model }),
      ...(tools.length > 0 && { tool_definitions: trainingTools(tools) }),
    },
    ...atifSteps(trajectory),
    extra: { environment: provenance.environment, task: trajectory.task, outcome, stop_reason: trajectory.stop_reason },
  };
}
