import { isDeepStrictEqual } from "node:util";
import { type EgressPolicy, type EnvironmentConfig, PlatformError, type Resources, type SandboxOptions } from "@aenv/contract";
import type { FolderMount, SandboxEngine, SandboxRuntime, SandboxSubject, SecondContainer } from "@aenv/sandbox";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import { secondOf } from "../task-sandboxes/policy.ts";
import type { InitialState } from "./initial-state.ts";
import type { Isolation } from "./isolation.ts";
import { templateOf } from "./program.ts";
import type { RuntimePolicy } from "./runtimes.ts";
import { subjectOf } from "./subject.ts";
import { isSameVariables } from "./variables.ts";
import type { WarmEnvironment } from "./warm-set.ts";

/** The process that an instance or a verification needs. */
export interface ClaimSpec {
  /** The owner of the instance, or of the bundle that is verified. Process starts are queued fairly between owners. */
  readonly owner: string;
  /** The unpacked bundle. */
  readonly folder: string;
  readonly digest: string;
  /** Environment variables, set before any of the author's code runs. */
  readonly variables: Readonly<Record<string, string>>;
  /**
   * Set if any process that has loaded the bundle can be used: its state is a value, and its variables are those of every instance of the
   * environment. Such processes are started ahead.
   */
  readonly environment: WarmEnvironment | null;
  /** Options of the sandbox itself; no process that was started ahead has them. */
  readonly sandboxOptions?: SandboxOptions | undefined;
  /** If it is not that of blank processes. */
  readonly runtime?: SandboxRuntime | undefined;
  /** A template of the operator, if it is not that of blank processes. */
  readonly template?: string | undefined;
  /** If they are not those of blank processes. */
  readonly resources?: Resources | undefined;
  /** No process that was started ahead has one. */
  readonly second?: SecondContainer | undefined;
  /** A snapshot with the files of the sandbox. */
  readonly sandboxSnapshot?: string | undefined;
  /** Where its programs may connect to. Sandboxes that were started ahead get it when they are claimed, before they load the bundle. */
  readonly egress?: EgressPolicy | undefined;
  /** Folders that its programs see; no process that was started ahead has them. */
  readonly mounts?: readonly FolderMount[] | undefined;
  /** How many forks of one instance are claimed at the same time, this one included. */
  readonly together?: number;
  /** What it is used for; undefined while a bundle is verified. */
  readonly subject?: SandboxSubject;
}

/** The process that an instance needs, but for the folder of its bundle. An environment that cannot run here is an error. */
export function claimSpecFor(
  environment: EnvironmentVersion,
  owner: string,
  initial: InitialState,
  isolation: Isolation,
  runtimes: RuntimePolicy,
  resources: Resources | undefined,
  engine: Pick<SandboxEngine, "can" | "templates">,
): Omit<ClaimSpec, "folder"> {
  const { bundleDigest, config, metadata, name, version } = environment;
  if (bundleDigest === null) throw new PlatformError("internal", `${name}@${version} has no bundle`);
  const keepsState = metadata?.keepsStateInModules ?? true;
  if (isolation === "shared" && keepsState && metadata !== null) {
    throw new PlatformError(
      "instance.unsupported",
      `${name}@${version} asks for shared processes but keeps its state in its modules; use defineEnvironment, or isolation "instance"`,
    );
  }
  const own = ownVariables(environment);
  // Variables of one instance must not be in the environment of a shared process.
  const variables = isolation === "shared" ? own : initial.variables;
  // A warm process has already run the author's code, with the environment's own variables only.
  // The policy of every instance of the environment; a request may have narrowed it.
  const isOwnEgress = initial.egress === undefined || isDeepStrictEqual(initial.egress, config.deployConfig?.egress ?? "none");
  const second = secondOf(initial.taskSandboxes);
  const canBeWarm =
    !keepsState &&
    initial.sandboxOptions === undefined &&
    initial.sandboxSnapshot === undefined &&
    initial.taskSandboxes?.hasSharedFolder !== true &&
    second === undefined &&
    isOwnEgress &&
    isSameVariables(variables, own);
  return {
    owner,
    subject: subjectOf(environment, owner, isolation === "shared" ? null : initial),
    digest: bundleDigest,
    variables,
    sandboxOptions: initial.sandboxOptions,
    runtime: runtimes.runtimeOf([environment.owner, owner], config.deployConfig?.runtime),
    template: templateOf(config, engine),
    resources,
    second,
    sandboxSnapshot: initial.sandboxSnapshot,
    egress: initial.egress,
    together: initial.together ?? 1,
    environment: canBeWarm
      ? { name, version, owner: environment.owner, warm: warmOf(config), warmStart: config.deployConfig?.warmStart === true }
      : null,
  };
}

function warmOf(config: EnvironmentConfig): number {
  const value = config.deployConfig?.warm;
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : 0;
}
