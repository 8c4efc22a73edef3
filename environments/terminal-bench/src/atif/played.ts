import { type AtifSource, atifSteps } from "@aenv/benchmark";
import { ATIF_VERSION } from "./write.ts";

export interface PlayedBy {
  readonly name: string;
  readonly version: string;
  readonly model: string | null;
}

/** An episode of the platform as a trajectory of Harbor. */
export function playedTrajectory(played: AtifSource, { name, version, model }: PlayedBy, sessionId: string): Record<string, unknown> {
  return {
    schema_version: ATIF_VERSION,
    session_id: sessionId,
    agent: { name, version, ...(model !== null && { model_name: model }) },
    ...atifSteps(played),
  };
}
