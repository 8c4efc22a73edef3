import { isDeepStrictEqual } from "node:util";
import { type EgressPolicy, type EnvironmentConfig, PlatformError, type Resources, type Variables } from "@aenv/contract";
import type { SandboxEngine, SandboxSpec } from "@aenv/sandbox";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import { secondOf } from "../task-sandboxes/policy.ts";
import type { InitialState } from "./initial-state.ts";
import type { Isolation } from "./isolation.ts";
import { type Program, programVariables, templateOf } from "./program.ts";
import type { RuntimePolicy } from "./runtimes.ts";
import { subjectOf } from "./subject.ts";
import { isSameVariables } from "./variables.ts";

/** What blank runners do not have. */
type Own = "resources" | "runtime" | "template" | "second" | "mounts" | "sandboxOptions" | "snapshot" | "isTemporarySnapshot" | "subject";

/** What a sandbox is started for, and how it differs from that of a blank runner. */
export interface StartRequest extends Pick<SandboxSpec, Own> {
  /** The owner of the instance, or of the bundle that is verified. Process starts are queued fairly between owners. */
  readonly owner: string;
  /** What it runs instead of the runner. */
  readonly program?: Program;
  /** The unpacked bundle: the files of the program, or what the runner loads. */
  readonly folder?: string | undefined;
  /** Environment variables of the program. A runner gets them with its bundle, before any of the author's code runs. */
  readonly variables?: Variables;
  /** Where its programs may connect to. Sandboxes that were started ahead get it when they are claimed, before they load the bundle. */
  readonly egress?: EgressPolicy | undefined;
  /** The instance that the program is. */
  readonly instanceId?: string;
}

/** The published environment that the processes of a set have loaded. */
export interface WarmEnvironment {
  readonly name: string;
  readonly version: string;
  /** Its warm processes count against the limit of this owner. */
  readonly owner: string;
  /** How many processes its publisher wants to be ready at all times: `deployConfig.warm`. */
  readonly warm: number;
  /** Whether processes are copies of a stored one: `deployConfig.warmStart`. */
  readonly warmStart: boolean;
}

/** A process that loads a bundle. */
export interface BundleRequest extends StartRequest {
  readonly folder: string;
  readonly digest: string;
  readonly variables: Variables;
  /**
   * Set if any process that has loaded the bundle can be used: its state is a value, and its variables are those of every instance of the
   * environment. Such processes are started ahead.
   */
  readonly environment: WarmEnvironment | null;
  /** How many forks of one instance are claimed at the same time, this one included. */
  readonly together?: number;
}

/** A program, with `snapshot` in the files of another sandbox. */
export interface ProgramRequest extends StartRequest {
  readonly program: Program;
  /** The name of its environment, if it is a copy of one that was stored when it answered. */
  readonly warmAs?: string | undefined;
}

export interface RequestOptions {
  readonly isolation: Isolation;
  readonly runtimes: RuntimePolicy;
  readonly resources: Resources | undefined;
}

/** The start that an instance needs, but for its folders. What instances share has no variables of one of them. */
function startRequestFor(
  environment: EnvironmentVersion,
  owner: string,
  initial: InitialState,
  { isolation, runtimes, resources }: RequestOptions,
): StartRequest & { readonly variables: Variables } {
  const isShared = isolation === "shared";
  return {
    owner,
    subject: subjectOf(environment, owner, isShared ? null : initial),
    variables: isShared ? ownVariables(environment) : initial.variables,
    runtime: runtimes.runtimeOf([environment.owner, owner], environment.config.deployConfig?.runtime),
    resources,
    second: secondOf(initial.taskSandboxes),
    egress: initial.egress,
    snapshot: initial.sandboxSnapshot,
  };
}

/** The start of a program for an instance, or for all that share it. */
export function programRequestFor(
  program: Program,
  environment: EnvironmentVersion,
  owner: string,
  initial: InitialState,
  options: RequestOptions,
): ProgramRequest {
  const { name, version, config } = environment;
  const { variables, snapshot, ...common } = startRequestFor(environment, owner, initial, options);
  const request = { ...common, program, variables: { ...programVariables(config), ...variables } };
  if (options.isolation === "shared") return request;
  // The memory of one that has secrets is not written to the disk, and one with the files of an instance is not like others.
  const isCopied = config.deployConfig?.warmStart === true && initial.hasSecrets !== true && snapshot === undefined;
  return { ...request, snapshot, instanceId: initial.id, warmAs: isCopied ? `${name}@${version}` : undefined };
}

/** The process that an instance needs, but for the folder of its bundle. An environment that cannot run here is an error. */
export function bundleRequestFor(
  environment: EnvironmentVersion,
  owner: string,
  initial: InitialState,
  engine: Pick<SandboxEngine, "can" | "templates">,
  options: RequestOptions,
): Omit<BundleRequest, "folder"> {
  const { bundleDigest, config, metadata, name, version } = environment;
  if (bundleDigest === null) throw new PlatformError("internal", `${name}@${version} has no bundle`);
  const keepsState = metadata?.keepsStateInModules ?? true;
  if (options.isolation === "shared" && keepsState && metadata !== null) {
    throw new PlatformError(
      "instance.unsupported",
      `${name}@${version} asks for shared processes but keeps its state in its modules; use defineEnvironment, or isolation "instance"`,
    );
  }
  const request = startRequestFor(environment, owner, initial, options);
  // A warm process has already run the author's code, with the environment's own variables only.
  // The policy of every instance of the environment; a request may have narrowed it.
  const isOwnEgress = initial.egress === undefined || isDeepStrictEqual(initial.egress, config.deployConfig?.egress ?? "none");
  const canBeWarm =
    !keepsState &&
    initial.sandboxOptions === undefined &&
    request.snapshot === undefined &&
    initial.taskSandboxes?.hasSharedFolder !== true &&
    request.second === undefined &&
    isOwnEgress &&
    isSameVariables(request.variables, ownVariables(environment));
  return {
    ...request,
    digest: bundleDigest,
    sandboxOptions: initial.sandboxOptions,
    template: templateOf(config, engine),
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
