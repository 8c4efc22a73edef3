import type { EpisodeTask, ForkFidelity, RecordingRequest } from "@aenv/contract";
import type { ToolLog, ToolProgress } from "../mcp/client.ts";
import type { CallOptions } from "./sandbox-client.ts";

/** Options of what an environment with roles has for each of them: tools, a prompt, replies, a solution. */
export interface RoleOptions extends CallOptions {
  /** The role that acts. Absent for an environment without roles. */
  readonly role?: string;
}

export interface CallToolOptions extends RoleOptions {
  readonly onProgress?: (progress: ToolProgress) => void;
  readonly onLog?: (log: ToolLog) => void;
}

export interface EnvironmentInfo {
  readonly name: string;
  readonly instanceId: string;
  readonly status: string;
  readonly ip: string;
  /** Empty if the server does not report it. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ForkOptions extends Pick<CallOptions, "signal"> {
  /** What the copies continue with. If absent: the state, and for programs `memory` or, where the sandbox has none to copy, `files`. */
  readonly fidelity?: ForkFidelity;
}

export interface SnapshotOptions {
  /** The name under which the platform stores it; its id if only the fidelity is given. */
  readonly name?: string;
  /** What is stored. The default is `state`. */
  readonly fidelity?: ForkFidelity;
  /** Files and memory of an instance that got secrets may contain them. They are stored only with this. */
  readonly includeSecrets?: boolean;
}

/** What a reset changes. */
export interface NewEpisode {
  /** The id of a listed task, or a task of your own, for environments that take such tasks. */
  readonly task?: EpisodeTask | null;
  readonly seed?: number;
  readonly observationsOnly?: boolean;
  /** Whether the environment's models are called, or answer from the recording of an earlier episode. */
  readonly recording?: RecordingRequest;
}
