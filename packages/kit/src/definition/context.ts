import type { Task } from "@aenv/contract";
import type { ModelHandle } from "../models/model.ts";
import type { Children } from "./children.ts";
import type { TaskSandbox, TaskSandboxes } from "./sandbox.ts";

// What the code of an environment gets: the inputs of its episode, and the hooks of a call.

/** The inputs of an episode. */
export interface EpisodeContext {
  readonly instanceId: string;
  readonly task: Task | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  /**
   * The sandbox of the episode's task: the second container, or the first one that `setup` opens. Calls of it fail with the reason if
   * there is none.
   */
  readonly sandbox: TaskSandbox;
  /** Opens further sandboxes, and finds them again. */
  readonly sandboxes: TaskSandboxes;
  /** The instances of other environments that belong to the episode: `deployConfig.uses`. */
  readonly children: Children;
  /** The model that `deployConfig.models` declares under this name. */
  readonly model: (name: string) => ModelHandle;
}

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";
export type Log = (level: LogLevel, data: unknown) => void;

export interface SetupContext extends EpisodeContext {
  /** Fires when the client disconnects, the timeout is over, or the instance is deleted before its setup is done. */
  readonly signal: AbortSignal;
}

export interface CallContext<State> extends EpisodeContext {
  readonly state: State;
  /** The role whose agent calls; null in environments without roles, and in calls of the trainer that are for no role. */
  readonly role: string | null;
  /** Fires when the client cancels, the timeout is over, or the server shuts down. */
  readonly signal: AbortSignal;
  /** Sends a log message to the agent's client. */
  readonly log: Log;
  /** Reports progress to the agent's client; ignored if the client did not request it. */
  readonly progress: (done: number, total?: number, message?: string) => void;
}
