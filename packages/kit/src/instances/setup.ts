import { type EpisodeTask, isPlatformError, type Json, messageOf, PlatformError, type Task } from "@aenv/contract";
import type { ChildHost } from "../children/backend.ts";
import { type EpisodeChildren, type StoredChildren, storedChildrenOf } from "../children/episode-children.ts";
import type { CompiledEnvironment, Toolset } from "../compile/environment.ts";
import type { EpisodeContext, SetupContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import type { PlatformLink } from "../link/link.ts";
import type { EpisodeModels } from "../models/episode-models.ts";
import type { ModelCalls } from "../models/model.ts";
import type { TurnRecord } from "../roles/turn-order.ts";
import type { EpisodeSandboxes } from "../sandboxes/episode-sandboxes.ts";
import { asStartFault, isPlatformFault } from "../sandboxes/faults.ts";
import { isPromise, startTimer, untilAborted } from "./call.ts";
import type { EpisodePath } from "./episode-path.ts";
import { toolsFor } from "./episode-tools.ts";
import type { FailureLog } from "./failure-log.ts";
import { observe } from "./observation.ts";
import { readSnapshot, readTurns } from "./snapshot.ts";

/** What the instances of a process share. */
export interface HostContext {
  readonly environment: CompiledEnvironment;
  readonly log: FailureLog;
  /** Null without a platform. */
  readonly link: PlatformLink | null;
  /** Null if nothing answers calls of models. */
  readonly models: ModelCalls | null;
  /** What runs children; null if nothing does. */
  readonly children: ChildHost | null;
  /** What a task was made of: its id, or the object that is no listed task. */
  givenOf(task: Task): EpisodeTask;
}

/** An episode that begins: what the environment's code gets, its sandboxes, its models and its children. */
export interface EpisodeScope {
  readonly context: EpisodeContext;
  readonly sandboxes: EpisodeSandboxes;
  readonly models: EpisodeModels;
  readonly children: EpisodeChildren;
  /** Null if no reward wants it. */
  readonly path: EpisodePath | null;
}

/** The result of a setup or a restore. */
export interface EpisodeStart {
  readonly state: unknown;
  /** Empty with roles. */
  readonly tools: Toolset;
  /** The tools of each role; empty without roles. */
  readonly roleTools: ReadonlyMap<string, Toolset>;
  /** What a snapshot has about the turns of roles; null for a new episode. */
  readonly turns: TurnRecord | null;
}

/** Long enough to fetch data and start services; an environment that needs more sets `setupTimeoutMs`. */
export const DEFAULT_SETUP_TIMEOUT_MS = 5 * 60_000;
/** After this an instance counts as ended even if its teardown still runs. */
const TEARDOWN_TIMEOUT_MS = 30_000;

/** Creates the state of a new episode with `setup`. */
export function setUp(host: HostContext, episode: EpisodeScope, controller: AbortController): Promise<EpisodeStart> {
  const { definition } = host.environment;
  return startEpisode(host, episode, controller, "setup", null, (context) => definition.setup?.(context));
}

/** Restores an earlier state from a snapshot. */
export async function restoreState(
  host: HostContext,
  snapshot: unknown,
  episode: EpisodeScope,
  controller: AbortController,
): Promise<EpisodeStart> {
  const { definition } = host.environment;
  return startEpisode(host, episode, controller, "restore", snapshot, (context) =>
    readSnapshot(definition, snapshot, identityOf(host.environment), context),
  );
}

/** The first observation of a new episode. If it fails, the episode does not begin and its state is torn down. */
export async function observeOrTearDown(
  host: HostContext,
  state: unknown,
  episode: EpisodeScope,
  controller: AbortController,
): Promise<Json> {
  const { instanceId } = episode.context;
  try {
    const context = setupContext(episode, controller);
    const { environment } = host;
    const first = async (role: string | null) => {
      const observation = await withTimeout(host, controller, "observe", () => observe(environment, state, { ...context, role }));
      return jsonOrThrow("instance.setup_failed", observation, `the result of observe of '${environment.name}'`);
    };
    if (environment.roles === null) return await first(null);
    const views: Record<string, Json> = {};
    for (const role of environment.roles.names) views[role] = await first(role);
    return views;
  } catch (error) {
    await tearDown(host, instanceId, state, episode);
    throw toSetupError(host, "observe", instanceId, error, controller);
  }
}

/** Runs the environment's teardown and closes the episode's sandboxes and children. Never fails: errors are logged, and the instance ends anyway. */
export async function tearDown(
  host: HostContext,
  instanceId: string,
  state: unknown,
  { sandboxes, children }: Pick<EpisodeScope, "sandboxes" | "children">,
  timeoutMs = TEARDOWN_TIMEOUT_MS,
): Promise<void> {
  await runTeardown(host, instanceId, state, timeoutMs);
  await Promise.all([sandboxes.close(), children.close()]);
}

async function runTeardown({ environment, log }: HostContext, instanceId: string, state: unknown, timeoutMs: number): Promise<void> {
  const { definition } = environment;
  if (definition.teardown === undefined) return;
  const what = `teardown of instance '${instanceId}'`;
  const controller = new AbortController();
  const stop = startTimer(controller, timeoutMs, () => new Error(`it did not finish within ${timeoutMs} ms and is no longer waited for`));
  try {
    const running = definition.teardown(state);
    if (isPromise(running)) await untilAborted(running, controller.signal);
  } catch (error) {
    log(what, error);
  } finally {
    stop();
  }
}

export function identityOf(environment: CompiledEnvironment): string {
  return `${environment.name}@${environment.version}`;
}

function setupContext({ context, sandboxes, models, children }: EpisodeScope, { signal }: AbortController): SetupContext {
  return { ...context, ...sandboxes.for(signal), ...models.for(signal), ...children.for(signal), signal };
}

async function startEpisode(
  host: HostContext,
  episode: EpisodeScope,
  controller: AbortController,
  step: "setup" | "restore",
  snapshot: unknown,
  make: (context: SetupContext) => unknown,
): Promise<EpisodeStart> {
  const { instanceId } = episode.context;
  const close = (state: unknown) => tearDown(host, instanceId, state, episode);
  let state: unknown;
  try {
    await beginAll(episode, step === "restore" ? storedChildrenOf(snapshot) : {}, controller.signal);
    const context = setupContext(episode, controller);
    state = await withTimeout(
      host,
      controller,
      step,
      () => make(context),
      (late) => void close(late),
    );
  } catch (error) {
    await Promise.all([episode.sandboxes.close(), episode.children.close()]);
    const failure = toSetupError(host, step, instanceId, error, controller);
    throw step === "restore" ? asSnapshotFault(failure) : failure;
  }
  try {
    return {
      state,
      ...(await toolsFor(host.environment, state, episode.children.grants)),
      turns: snapshot === null ? null : readTurns(host.environment, snapshot),
    };
  } catch (error) {
    // Without tools the episode does not begin, so its state is torn down.
    await close(state);
    const failure = toSetupError(host, "toolsOf", instanceId, error, controller);
    throw step === "restore" ? asSnapshotFault(failure) : failure;
  }
}

/** Opens what an episode begins with. If one fails, the others are waited for, so that closing misses nothing. */
async function beginAll({ sandboxes, children }: EpisodeScope, stored: StoredChildren, signal: AbortSignal): Promise<void> {
  const opening = [sandboxes.begin(signal), children.begin(signal, stored)];
  await Promise.allSettled(opening);
  await Promise.all(opening);
}

/** Runs the environment's code and waits until it is done, the signal fires, or the environment's timeout is over. */
function withTimeout<T>(
  host: HostContext,
  controller: AbortController,
  step: string,
  run: () => T | Promise<T>,
  onLate?: (value: T) => void,
): T | Promise<T> {
  controller.signal.throwIfAborted();
  const running = run();
  if (!isPromise(running)) return running;
  const { definition, name } = host.environment;
  const { setupTimeoutMs = DEFAULT_SETUP_TIMEOUT_MS } = definition;
  const stop = startTimer(controller, setupTimeoutMs, () => {
    const advice = "make it faster, or raise setupTimeoutMs in the definition";
    return new PlatformError("instance.start_timeout", `${step} of '${name}' did not finish within ${setupTimeoutMs} ms; ${advice}`);
  });
  return untilAborted(running as Promise<T>, controller.signal, onLate).finally(stop);
}

/** The environment cannot continue from a snapshot. Its sender is told so: it may be from elsewhere, or changed. */
function asSnapshotFault(failure: unknown): unknown {
  if (!isPlatformError(failure, "instance.setup_failed")) return failure;
  return new PlatformError("snapshot.invalid", `this snapshot cannot be restored: ${failure.message}`, { cause: failure.cause });
}

/** Logs failures of the environment's code and converts them to platform errors. An aborted start is no failure. */
function toSetupError(
  { environment, log }: HostContext,
  step: string,
  instanceId: string,
  error: unknown,
  controller: AbortController,
): unknown {
  if (controller.signal.aborted) return error;
  if (isPlatformFault(error)) return asStartFault(error);
  if (error instanceof PlatformError) return error;
  log(`${step} of instance '${instanceId}'`, error);
  return new PlatformError("instance.setup_failed", `${step} of '${environment.name}' failed: ${messageOf(error)}`, { cause: error });
}
