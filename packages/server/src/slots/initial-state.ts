import {
  type ChildGrant,
  type EgressPolicy,
  type EpisodeTask,
  episodeTask,
  type SandboxGrant,
  type SandboxOptions,
  sandboxGrant,
} from "@aenv/contract";
import { z } from "zod";
import type { StoredModels } from "../models/stored-model.ts";
import type { TaskSandboxPolicy } from "../task-sandboxes/policy.ts";

/** What an instance starts with in a sandbox. */
export interface InitialState {
  readonly id: string;
  readonly task: EpisodeTask | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  /** Whether some of the variables are secrets. Not sent to the sandbox. */
  readonly hasSecrets?: boolean;
  readonly arguments: readonly string[];
  /** Whether the request named the seed. Not sent to the sandbox. */
  readonly isSeedNamed?: boolean;
  readonly snapshot?: unknown;
  /** The digest of the state in `snapshot`, if the program computes one. Not sent to the sandbox. */
  readonly digest?: string | undefined;
  readonly sandboxOptions?: SandboxOptions | undefined;
  /** A snapshot of the engine, with the files that the sandbox starts with. Not sent to the sandbox. */
  readonly sandboxSnapshot?: string | undefined;
  /** Set if `sandboxSnapshot` also has the memory: the id of the instance in it, which gets another one. Not sent to the sandbox. */
  readonly storedInstance?: string;
  /** Where its programs may connect to; undefined on engines that do not restrict it. */
  readonly egress?: EgressPolicy | undefined;
  /** What its code may open; undefined if the environment declares no sandboxes. */
  readonly taskSandboxes?: TaskSandboxPolicy | undefined;
  /** Whether its code sends requests to the platform, so that its process is connected before the instance is created. Not sent to the sandbox. */
  readonly platformLink?: boolean | undefined;
  /** The models that its code may call, by name. The instance gets the names. */
  readonly models?: StoredModels | undefined;
  /** What each of its episodes has instances of. */
  readonly children?: readonly ChildGrant[] | undefined;
  /** Stored sandboxes of the parent of a fork. */
  readonly taskCopies?: SandboxGrant["copies"];
  /** What people and tools that look at its sandbox are shown. It is not sent to the instance. */
  readonly ttl?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** How many forks of one instance start at the same time, this one included; 1 by default. Not sent to the sandbox. */
  readonly together?: number;
}

const response = z.object({
  task: episodeTask.nullish(),
  seed: z.number(),
  environment_variables: z.record(z.string(), z.string()),
  arguments: z.array(z.string()),
  snapshot: z.unknown(),
  digest: z.string().optional(),
  sandboxes: sandboxGrant.optional(),
});

/** The body of the request that creates the instance in its sandbox. */
export function createBody(initial: InitialState): Record<string, unknown> {
  return {
    id: initial.id,
    seed: initial.seed,
    environment_variables: initial.variables,
    arguments: initial.arguments,
    ...(initial.task !== null && { task: initial.task }),
    ...(initial.taskSandboxes !== undefined && { sandboxes: grantOf(initial.taskSandboxes, initial.taskCopies) }),
    ...(initial.models !== undefined && { modelNames: Object.keys(initial.models) }),
    ...(initial.children !== undefined && initial.children.length > 0 && { children: initial.children }),
    ...(initial.snapshot !== undefined && { snapshot: initial.snapshot }),
  };
}

function grantOf({ hasSecond: second }: TaskSandboxPolicy, copies: SandboxGrant["copies"]): SandboxGrant {
  return { second, ...(copies !== undefined && { copies }) };
}

/** The current state of an instance, as its sandbox reports it for a fork in another sandbox. */
export function parseInitialState(id: string, body: unknown): InitialState {
  const { task, seed, environment_variables: variables, arguments: args, snapshot, digest, sandboxes } = response.parse(body);
  return { id, task: task ?? null, seed, variables, arguments: args, snapshot, digest, taskCopies: sandboxes?.copies };
}
