import { type Json, messageOf, PlatformError } from "@aenv/contract";
import type { CompiledEnvironment, Toolset } from "../compile/environment.ts";
import type { EpisodeContext, SetupContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import { isPromise, startTimer, untilAborted } from "./call.ts";
import { toolsFor } from "./episode-tools.ts";
import type { FailureLog } from "./failure-log.ts";
import { observe } from "./observation.ts";
import { readSnapshot } from "./snapshot.ts";

/** What all instances of a process share. */
export interface HostContext {
  readonly environment: CompiledEnvironment;
  readonly log: FailureLog;
}

/** What an episode begins with. */
export interface EpisodeStart {
  readonly state: unknown;
  readonly tools: Toolset;
}

/** Long enough for data to be fetched and services to come up; an environment that needs more says so. */
export const DEFAULT_SETUP_TIMEOUT_MS = 5 * 60_000;
/** After this an instance is gone even if its teardown still runs. */
const TEARDOWN_TIMEOUT_MS = 30_000;

/** A new episode's state, made by `setup`. */
export function setUp(host: HostContext, episode: EpisodeContext, controller: AbortController): Promise<EpisodeStart> {
  const { definition } = host.environment;
  return begin(host, episode, controller, "setup", (context) => definition.setup?.(context));
}

/** An earlier state, read from a snapshot. */
export function restoreState(
  host: HostContext,
  snapshot: unknown,
  episode: EpisodeContext,
  controller: AbortController,
): Promise<EpisodeStart> {
  const { definition } = host.environment;
  return begin(host, episode, controller, "restore", (context) =>
    readSnapshot(definition, snapshot, identityOf(host.environment), context),
  );
}

/** What the agent of a new episode sees first. A state that cannot be shown begins no episode, so it is closed. */
export async function observeOrTearDown(
  host: HostContext,
  state: unknown,
  episode: EpisodeContext,
  controller: AbortController,
): Promise<Json> {
  try {
    const context = { ...episode, signal: controller.signal };
    const seen = await bounded(host, controller, "observe", () => observe(host.environment, state, context));
    return jsonOrThrow("instance.setup_failed", seen, `what observe of '${host.environment.name}' returned`);
  } catch (error) {
    await tearDown(host, episode.instanceId, state);
    throw explain(host, "observe", episode.instanceId, error, controller);
  }
}

/** Lets the environment close what its setup opened. Never fails: the instance is gone whatever its teardown does. */
export async function tearDown(
  { environment, log }: HostContext,
  instanceId: string,
  state: unknown,
  timeoutMs = TEARDOWN_TIMEOUT_MS,
): Promise<void> {
  const { definition } = environment;
  if (definition.teardown === undefined) return;
  const what = `teardown of instance '${instanceId}'`;
  const controller = new AbortController();
  const stop = startTimer(controller, timeoutMs, () => new Error(`it is not done after ${timeoutMs} ms and is not waited for any longer`));
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

async function begin(
  host: HostContext,
  episode: EpisodeContext,
  controller: AbortController,
  step: "setup" | "restore",
  make: (context: SetupContext) => unknown,
): Promise<EpisodeStart> {
  const { instanceId } = episode;
  const close = (state: unknown) => tearDown(host, instanceId, state);
  let state: unknown;
  try {
    const context = { ...episode, signal: controller.signal };
    state = await bounded(
      host,
      controller,
      step,
      () => make(context),
      (late) => void close(late),
    );
  } catch (error) {
    throw explain(host, step, instanceId, error, controller);
  }
  try {
    return { state, tools: await toolsFor(host.environment, state) };
  } catch (error) {
    // A state whose tools cannot be named begins no episode, so what it holds open is closed.
    await close(state);
    throw explain(host, "toolsOf", instanceId, error, controller);
  }
}

/** Runs the environment's code; waits for it until the signal fires or the environment's own limit is over. */
function bounded<T>(
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
    const advice = "make it quicker, or raise setupTimeoutMs in the definition";
    return new PlatformError("instance.start_timeout", `${step} of '${name}' did not finish within ${setupTimeoutMs} ms; ${advice}`);
  });
  return untilAborted(running as Promise<T>, controller.signal, onLate).finally(stop);
}

/** Failures of the environment's code become ours, and their stacks go to the log; a cancelled start was no failure of it. */
function explain(
  { environment, log }: HostContext,
  step: string,
  instanceId: string,
  error: unknown,
  controller: AbortController,
): unknown {
  if (controller.signal.aborted || error instanceof PlatformError) return error;
  log(`${step} of instance '${instanceId}'`, error);
  return new PlatformError("instance.setup_failed", `${step} of '${environment.name}' failed: ${messageOf(error)}`, { cause: error });
}
