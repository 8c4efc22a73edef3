import { type EnvironmentConfig, instancePrefix, instanceRoutes, PlatformError, type SandboxOptions } from "@aenv/contract";
import type { Sandbox, SandboxExit } from "@aenv/sandbox";
import { z } from "zod";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import type { InstanceRow, Slot } from "../instances/row.ts";
import { exitCauseOf, requestSandbox, type SandboxClients, type SandboxRequest } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { Hosts } from "./hosts.ts";
import { type Isolation, isolationOf } from "./isolation.ts";
import type { ClaimSpec, Pool } from "./pool.ts";
import { isSameVariables } from "./variables.ts";

/** What a sandbox is told when an instance begins in it. */
export interface InitialState {
  readonly id: string;
  readonly task: string | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly arguments: readonly string[];
  readonly snapshot?: unknown;
  readonly sandboxOptions?: SandboxOptions | undefined;
  /** How many begin at the same moment as copies of one instance; 1 unless told. Not for the sandbox. */
  readonly together?: number;
}

export interface SlotsOptions {
  readonly pool: Pool;
  readonly hosts: Hosts;
  readonly clients: SandboxClients;
  /** The environment's unpacked bundle. */
  readonly bundleFolder: (digest: string) => Promise<string>;
  readonly startTimeoutMs: number;
  /** A sandbox of this place that another server keeps. */
  readonly findSandbox: (sandboxId: string) => Promise<Sandbox | null>;
  /** Called when a sandbox that is kept here ends, with those known to have sat in it. */
  readonly onExit: (sandboxId: string, instanceIds: readonly string[], exit: SandboxExit) => void;
}

const initialStateAnswer = z.object({
  task: z.string().nullish(),
  seed: z.number(),
  environment_variables: z.record(z.string(), z.string()),
  arguments: z.array(z.string()),
  snapshot: z.unknown(),
});

/** Who ends an instance waits no longer than this for its sandbox to hear of it; it is looked for again after a restart. */
const LEAVE_MS = 5_000;

/** What the control API asks an instance. */
const questions = {
  reset: { ...instanceRoutes.reset, maxBytes: responseLimits.reset },
  snapshot: { ...instanceRoutes.snapshot, maxBytes: responseLimits.state },
} as const;

/** How far a start has come, for the error of one that takes too long. */
interface Progress {
  step: string;
}

/** Finds each instance a place in a sandbox and begins its episode there. */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #sandboxes = new Map<string, Sandbox>();
  /** Who sits in which sandbox. */
  readonly #seated = new Map<string, Set<string>>();
  /** Sandboxes that could not be ended; they are tried again. */
  readonly #stuck = new Set<Sandbox>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** Whether the sandbox is kept here. */
  holds(sandboxId: string): boolean {
    return this.#sandboxes.has(sandboxId);
  }

  /** A sandbox that is kept here, or by another server at this place. */
  async find(sandboxId: string): Promise<Sandbox | null> {
    return this.#sandboxes.get(sandboxId) ?? this.#options.findSandbox(sandboxId);
  }

  /** All of it within the start timeout, whatever takes so long: the process, its code, or the environment's setup. */
  async place(environment: EnvironmentVersion, owner: string, opening: InitialState, signal: AbortSignal): Promise<Slot> {
    const { startTimeoutMs } = this.#options;
    const deadline = AbortSignal.timeout(startTimeoutMs);
    const progress: Progress = { step: "its process has not loaded its code yet" };
    try {
      return await this.#place(environment, owner, opening, AbortSignal.any([signal, deadline]), progress);
    } catch (cause) {
      if (!deadline.aborted || signal.aborted) throw cause;
      const { name, version } = environment;
      const message = `${name}@${version} did not start within ${startTimeoutMs / 1_000} s (the server's startTimeout): ${progress.step}`;
      throw new PlatformError("instance.start_timeout", message, { cause });
    }
  }

  async #place(
    environment: EnvironmentVersion,
    owner: string,
    opening: InitialState,
    signal: AbortSignal,
    progress: Progress,
  ): Promise<Slot> {
    const isolation = isolationOf(environment.config);
    const spec = await this.#claimSpec(environment, opening, isolation);
    const sandbox =
      isolation === "shared" ? await this.#options.hosts.sit(owner, spec, signal) : await this.#options.pool.claim(spec, signal);
    progress.step = "its setup has not finished yet";
    this.#watch(sandbox, opening.id);
    const slot: Slot = {
      sandboxId: sandbox.id,
      address: sandbox.address,
      prefix: instancePrefix(opening.id),
      isOwnSandbox: isolation === "instance",
    };
    try {
      await this.#ask(slot, { method: "POST", path: "/env-instance", maxBytes: responseLimits.instance, body: toRequest(opening), signal });
      return slot;
    } catch (error) {
      const cause = await exitCauseOf(sandbox, error);
      await this.leave(slot, opening.id);
      throw cause;
    }
  }

  /** Copies an instance within its own process, which another server may keep. */
  async forkBeside(parentId: string, slot: Slot, ids: readonly string[], signal: AbortSignal): Promise<void> {
    const seated = this.#seated.get(slot.sandboxId);
    if (seated !== undefined) this.#options.hosts.sitBeside(slot.sandboxId, ids.length);
    for (const id of ids) seated?.add(id);
    try {
      const path = `${instancePrefix(parentId)}/fork`;
      await this.#ask(slot, { method: "POST", path, maxBytes: responseLimits.fork, body: { ids }, signal });
    } catch (error) {
      for (const id of ids) await this.leave(slot, id);
      throw error;
    }
  }

  /** All that another sandbox needs to go on where this instance stands. */
  async readInitialState(id: string, slot: Slot, signal: AbortSignal): Promise<InitialState> {
    const request = { method: "GET", path: `${instancePrefix(id)}/opening`, maxBytes: responseLimits.state, signal } as const;
    const answer = initialStateAnswer.parse(await this.#ask(slot, request));
    const { task, seed, environment_variables: variables, arguments: args, snapshot } = answer;
    return { id, task: task ?? null, seed, variables, arguments: args, snapshot };
  }

  /** Ends an instance's place: the whole sandbox if it was alone in it. Never fails: what is gone is gone. */
  async leave(slot: Slot, instanceId: string): Promise<void> {
    const isSeated = this.#seated.get(slot.sandboxId)?.delete(instanceId) ?? false;
    if (slot.isOwnSandbox) {
      const sandbox = await this.find(slot.sandboxId).catch(() => null);
      if (sandbox !== null) await this.discard(sandbox);
      return;
    }
    if (isSeated) this.#options.hosts.leave(slot.sandboxId);
    const request = { method: "DELETE", path: instancePrefix(instanceId), timeoutMs: LEAVE_MS, maxBytes: responseLimits.instance } as const;
    await requestSandbox(this.#options.clients, slot.sandboxId, slot.address, request).catch(() => {});
  }

  /** Tries again what could not be ended. */
  async retry(): Promise<void> {
    const stuck = [...this.#stuck];
    this.#stuck.clear();
    await Promise.all(stuck.map((sandbox) => this.discard(sandbox)));
  }

  /** Ends a sandbox; if that fails now, it is tried again. */
  async discard(sandbox: Sandbox): Promise<void> {
    const ending = sandbox
      .destroy()
      .catch(() => void this.#stuck.add(sandbox))
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    await ending;
  }

  /** Resolves when what is being ended has ended, with its files: a process that exits before would leave them. */
  async settled(): Promise<void> {
    await Promise.all(this.#ending);
  }

  /** Asks an instance something through its trainer API. */
  ask(slot: Slot, question: keyof typeof questions, body: unknown, signal: AbortSignal): Promise<unknown> {
    const { method, path, maxBytes } = questions[question];
    return this.#ask(slot, { method, path: `${slot.prefix}${path}`, maxBytes, body, signal });
  }

  /** Takes an instance and its sandbox under its eyes that another process of ours has kept so far. */
  adopt({ id, owner, digest, slot }: InstanceRow, sandbox: Sandbox): void {
    const isSeated = this.#seated.get(sandbox.id)?.has(id) ?? false;
    this.#watch(sandbox, id);
    if (slot?.isOwnSandbox === false && !isSeated) this.#options.hosts.adopt(owner, digest, sandbox);
  }

  /** Looks after no sandbox any more: whatever becomes of them is no news. */
  detach(): void {
    this.#sandboxes.clear();
    this.#seated.clear();
  }

  #watch(sandbox: Sandbox, instanceId: string): void {
    const known = this.#seated.get(sandbox.id);
    const seated = known ?? new Set<string>();
    seated.add(instanceId);
    if (known !== undefined) return;
    this.#sandboxes.set(sandbox.id, sandbox);
    this.#seated.set(sandbox.id, seated);
    void sandbox.exited.then((exit) => {
      if (!this.#sandboxes.delete(sandbox.id)) return;
      this.#seated.delete(sandbox.id);
      void this.#options.clients.forget(sandbox.id);
      this.#options.onExit(sandbox.id, [...seated], exit);
      // What ended by itself has left its files.
      void this.discard(sandbox);
    });
  }

  #ask(slot: Slot, request: Omit<SandboxRequest, "timeoutMs">): Promise<unknown> {
    const { clients, startTimeoutMs } = this.#options;
    return requestSandbox(clients, slot.sandboxId, slot.address, { ...request, timeoutMs: startTimeoutMs });
  }

  async #claimSpec(environment: EnvironmentVersion, opening: InitialState, isolation: Isolation): Promise<ClaimSpec> {
    const { bundleDigest, config, metadata, name, version, owner } = environment;
    if (bundleDigest === null) {
      throw new PlatformError(
        "instance.unsupported",
        `${name}@${version} has no bundle, and this server runs bundles only; publish it with 'aenv push' from its project`,
      );
    }
    const keepsState = metadata?.keepsStateInModules ?? true;
    if (isolation === "shared" && keepsState && metadata !== null) {
      throw new PlatformError(
        "instance.unsupported",
        `${name}@${version} asks for shared processes but keeps its state in its modules; use defineEnvironment, or isolation "instance"`,
      );
    }
    const own = ownVariables(environment);
    // What is one instance's alone must not be in the environment of a process that many share.
    const variables = isolation === "shared" ? own : opening.variables;
    return {
      folder: await this.#options.bundleFolder(bundleDigest),
      digest: bundleDigest,
      variables,
      sandboxOptions: opening.sandboxOptions,
      together: opening.together ?? 1,
      // A process that is prepared has run the author's code already, with the environment's own variables only.
      environment:
        !keepsState && opening.sandboxOptions === undefined && isSameVariables(variables, own)
          ? { name, version, owner, warm: warmOf(config) }
          : null,
    };
  }
}

function warmOf(config: EnvironmentConfig): number {
  const value = config.deployConfig?.warm;
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : 0;
}

function toRequest(opening: InitialState): Record<string, unknown> {
  return {
    id: opening.id,
    seed: opening.seed,
    environment_variables: opening.variables,
    arguments: opening.arguments,
    ...(opening.task !== null && { task: opening.task }),
    ...(opening.snapshot !== undefined && { snapshot: opening.snapshot }),
  };
}
