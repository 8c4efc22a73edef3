import { type EnvironmentConfig, instancePrefix, instanceRoutes, PlatformError, type SandboxOptions } from "@aenv/contract";
import type { Box, BoxExit } from "@aenv/sandbox";
import { z } from "zod";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { ownVariables } from "../hub/own-variables.ts";
import { answerLimits } from "./answer-limits.ts";
import { askBox, type BoxClients, type BoxRequest, causeOf } from "./box-client.ts";
import type { Hosts } from "./hosts.ts";
import { type Isolation, isolationOf } from "./isolation.ts";
import type { ClaimSpec, Pool } from "./pool.ts";
import type { InstanceRow, Seat } from "./row.ts";
import { isSameVariables } from "./variables.ts";

/** What a box is told when an instance begins in it. */
export interface Opening {
  readonly id: string;
  readonly task: string | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly arguments: readonly string[];
  readonly snapshot?: unknown;
  readonly sandboxOptions?: SandboxOptions | undefined;
  /** How many begin at the same moment as copies of one instance; 1 unless told. Not for the box. */
  readonly together?: number;
}

export interface PlacementOptions {
  readonly pool: Pool;
  readonly hosts: Hosts;
  readonly clients: BoxClients;
  /** The environment's unpacked bundle. */
  readonly bundleFolder: (digest: string) => Promise<string>;
  readonly startTimeoutMs: number;
  /** A box of this place that another replica keeps. */
  readonly findBox: (boxId: string) => Promise<Box | null>;
  /** Called when a box that is kept here ends, with those known to have sat in it. */
  readonly onExit: (boxId: string, instanceIds: readonly string[], exit: BoxExit) => void;
}

const openingAnswer = z.object({
  task: z.string().nullish(),
  seed: z.number(),
  environment_variables: z.record(z.string(), z.string()),
  arguments: z.array(z.string()),
  snapshot: z.unknown(),
});

/** Who ends an instance waits no longer than this for its box to hear of it; it is looked for again after a restart. */
const LEAVE_MS = 5_000;

/** What the control API asks an instance. */
const questions = {
  reset: { ...instanceRoutes.reset, maxBytes: answerLimits.reset },
  snapshot: { ...instanceRoutes.snapshot, maxBytes: answerLimits.state },
} as const;

/** How far a start has come, for the error of one that takes too long. */
interface Progress {
  step: string;
}

/** Finds each instance a place in a box and begins its episode there. */
export class Placement {
  readonly #options: PlacementOptions;
  readonly #boxes = new Map<string, Box>();
  /** Who sits in which box. */
  readonly #seated = new Map<string, Set<string>>();
  /** Boxes that could not be ended; they are tried again. */
  readonly #stuck = new Set<Box>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** Whether the box is kept here. */
  holds(boxId: string): boolean {
    return this.#boxes.has(boxId);
  }

  /** A box that is kept here, or by another replica at this place. */
  async find(boxId: string): Promise<Box | null> {
    return this.#boxes.get(boxId) ?? this.#options.findBox(boxId);
  }

  /** All of it within the start timeout, whatever takes so long: the process, its code, or the environment's setup. */
  async place(environment: EnvironmentVersion, owner: string, opening: Opening, signal: AbortSignal): Promise<Seat> {
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

  async #place(environment: EnvironmentVersion, owner: string, opening: Opening, signal: AbortSignal, progress: Progress): Promise<Seat> {
    const isolation = isolationOf(environment.config);
    const spec = await this.#claimSpec(environment, opening, isolation);
    const box = isolation === "shared" ? await this.#options.hosts.sit(owner, spec, signal) : await this.#options.pool.claim(spec, signal);
    progress.step = "its setup has not finished yet";
    this.#watch(box, opening.id);
    const seat: Seat = { boxId: box.id, address: box.address, prefix: instancePrefix(opening.id), isOwnBox: isolation === "instance" };
    try {
      await this.#ask(seat, { method: "POST", path: "/env-instance", maxBytes: answerLimits.instance, body: toRequest(opening), signal });
      return seat;
    } catch (error) {
      const cause = await causeOf(box, error);
      await this.leave(seat, opening.id);
      throw cause;
    }
  }

  /** Copies an instance within its own process, which another replica may keep. */
  async forkBeside(parentId: string, seat: Seat, ids: readonly string[], signal: AbortSignal): Promise<void> {
    const seated = this.#seated.get(seat.boxId);
    if (seated !== undefined) this.#options.hosts.sitBeside(seat.boxId, ids.length);
    for (const id of ids) seated?.add(id);
    try {
      const path = `${instancePrefix(parentId)}/fork`;
      await this.#ask(seat, { method: "POST", path, maxBytes: answerLimits.fork, body: { ids }, signal });
    } catch (error) {
      for (const id of ids) await this.leave(seat, id);
      throw error;
    }
  }

  /** All that another box needs to go on where this instance stands. */
  async openingOf(id: string, seat: Seat, signal: AbortSignal): Promise<Opening> {
    const request = { method: "GET", path: `${instancePrefix(id)}/opening`, maxBytes: answerLimits.state, signal } as const;
    const answer = openingAnswer.parse(await this.#ask(seat, request));
    const { task, seed, environment_variables: variables, arguments: args, snapshot } = answer;
    return { id, task: task ?? null, seed, variables, arguments: args, snapshot };
  }

  /** Ends an instance's place: the whole box if it was alone in it. Never fails: what is gone is gone. */
  async leave(seat: Seat, instanceId: string): Promise<void> {
    const isSeated = this.#seated.get(seat.boxId)?.delete(instanceId) ?? false;
    if (seat.isOwnBox) {
      const box = await this.find(seat.boxId).catch(() => null);
      if (box !== null) await this.discard(box);
      return;
    }
    if (isSeated) this.#options.hosts.leave(seat.boxId);
    const request = { method: "DELETE", path: instancePrefix(instanceId), timeoutMs: LEAVE_MS, maxBytes: answerLimits.instance } as const;
    await askBox(this.#options.clients, seat.boxId, seat.address, request).catch(() => {});
  }

  /** Tries again what could not be ended. */
  async retry(): Promise<void> {
    const stuck = [...this.#stuck];
    this.#stuck.clear();
    await Promise.all(stuck.map((box) => this.discard(box)));
  }

  /** Ends a box; if that fails now, it is tried again. */
  async discard(box: Box): Promise<void> {
    const ending = box
      .destroy()
      .catch(() => void this.#stuck.add(box))
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    await ending;
  }

  /** Resolves when what is being ended has ended, with its files: a process that exits before would leave them. */
  async settled(): Promise<void> {
    await Promise.all(this.#ending);
  }

  /** Asks an instance something through its trainer API. */
  ask(seat: Seat, question: keyof typeof questions, body: unknown, signal: AbortSignal): Promise<unknown> {
    const { method, path, maxBytes } = questions[question];
    return this.#ask(seat, { method, path: `${seat.prefix}${path}`, maxBytes, body, signal });
  }

  /** Takes an instance and its box under its eyes that another process of ours has kept so far. */
  adopt({ id, owner, digest, seat }: InstanceRow, box: Box): void {
    const isSeated = this.#seated.get(box.id)?.has(id) ?? false;
    this.#watch(box, id);
    if (seat?.isOwnBox === false && !isSeated) this.#options.hosts.adopt(owner, digest, box);
  }

  /** Looks after no box any more: whatever becomes of them is no news. */
  letGo(): void {
    this.#boxes.clear();
    this.#seated.clear();
  }

  #watch(box: Box, instanceId: string): void {
    const known = this.#seated.get(box.id);
    const seated = known ?? new Set<string>();
    seated.add(instanceId);
    if (known !== undefined) return;
    this.#boxes.set(box.id, box);
    this.#seated.set(box.id, seated);
    void box.exited.then((exit) => {
      if (!this.#boxes.delete(box.id)) return;
      this.#seated.delete(box.id);
      void this.#options.clients.forget(box.id);
      this.#options.onExit(box.id, [...seated], exit);
      // What ended by itself has left its files.
      void this.discard(box);
    });
  }

  #ask(seat: Seat, request: Omit<BoxRequest, "timeoutMs">): Promise<unknown> {
    const { clients, startTimeoutMs } = this.#options;
    return askBox(clients, seat.boxId, seat.address, { ...request, timeoutMs: startTimeoutMs });
  }

  async #claimSpec(environment: EnvironmentVersion, opening: Opening, isolation: Isolation): Promise<ClaimSpec> {
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

function toRequest(opening: Opening): Record<string, unknown> {
  return {
    id: opening.id,
    seed: opening.seed,
    environment_variables: opening.variables,
    arguments: opening.arguments,
    ...(opening.task !== null && { task: opening.task }),
    ...(opening.snapshot !== undefined && { snapshot: opening.snapshot }),
  };
}
