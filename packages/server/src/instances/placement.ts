import { type EnvironmentConfig, instancePrefix, PlatformError } from "@aenv/contract";
import type { Box, BoxExit } from "@aenv/sandbox";
import { z } from "zod";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { askBox, type BoxClients } from "./box-client.ts";
import type { Hosts } from "./hosts.ts";
import type { ClaimSpec, Pool } from "./pool.ts";
import type { Seat } from "./row.ts";

/** How strong the walls around an instance are. */
export type Isolation = "shared" | "instance";

/** What a box is told when an instance begins in it. */
export interface Opening {
  readonly id: string;
  readonly task: string | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly arguments: readonly string[];
  readonly snapshot?: unknown;
}

export interface PlacementOptions {
  readonly pool: Pool;
  readonly hosts: Hosts;
  readonly clients: BoxClients;
  /** The environment's unpacked bundle. */
  readonly bundleFolder: (digest: string) => Promise<string>;
  readonly startTimeoutMs: number;
  /** Called when a box ends under the instances that sat in it. */
  readonly onExit: (instanceIds: readonly string[], exit: BoxExit) => void;
}

const openingAnswer = z.object({
  task: z.string().nullish(),
  seed: z.number(),
  environment_variables: z.record(z.string(), z.string()),
  arguments: z.array(z.string()),
  snapshot: z.unknown(),
});

/** Finds each instance a place in a box and begins its episode there. */
export class Placement {
  readonly #options: PlacementOptions;
  readonly #boxes = new Map<string, Box>();
  /** Who sits in which box. */
  readonly #seated = new Map<string, Set<string>>();

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  box(id: string): Box | null {
    return this.#boxes.get(id) ?? null;
  }

  async place(environment: EnvironmentVersion, owner: string, opening: Opening, signal: AbortSignal): Promise<Seat> {
    const isolation = isolationOf(environment.config);
    const spec = await this.#claimSpec(environment, opening, isolation);
    const box = isolation === "shared" ? await this.#options.hosts.sit(owner, spec, signal) : await this.#options.pool.claim(spec, signal);
    this.watch(box, [opening.id]);
    const seat: Seat = { boxId: box.id, address: box.address, prefix: instancePrefix(opening.id), isOwnBox: isolation === "instance" };
    try {
      await this.#ask(seat, "POST", "/env-instance", toRequest(opening), signal);
      return seat;
    } catch (error) {
      await this.leave(seat, opening.id);
      throw error;
    }
  }

  /** Copies an instance within its own process. */
  async forkBeside(parentId: string, seat: Seat, ids: readonly string[], signal: AbortSignal): Promise<Seat[]> {
    this.#options.hosts.sitBeside(seat.boxId, ids.length);
    for (const id of ids) this.#seated.get(seat.boxId)?.add(id);
    try {
      await this.#ask(seat, "POST", `${instancePrefix(parentId)}/fork`, { ids }, signal);
    } catch (error) {
      for (const id of ids) await this.leave(seat, id);
      throw error;
    }
    return ids.map((id) => ({ ...seat, prefix: instancePrefix(id) }));
  }

  /** All that another box needs to go on where this instance stands. */
  async openingOf(id: string, seat: Seat, signal: AbortSignal): Promise<Opening> {
    const answer = openingAnswer.parse(await this.#ask(seat, "GET", `${instancePrefix(id)}/opening`, undefined, signal));
    const { task, seed, environment_variables: variables, arguments: args, snapshot } = answer;
    return { id, task: task ?? null, seed, variables, arguments: args, snapshot };
  }

  /** Ends an instance's place: the whole box if it was alone in it. Never fails: what is gone is gone. */
  async leave(seat: Seat, instanceId: string): Promise<void> {
    const box = this.#boxes.get(seat.boxId);
    this.#seated.get(seat.boxId)?.delete(instanceId);
    if (seat.isOwnBox) return box?.destroy();
    this.#options.hosts.leave(seat.boxId);
    if (box !== undefined) await this.#ask(seat, "DELETE", instancePrefix(instanceId), undefined).catch(() => {});
  }

  /** Asks an instance something on the trainer's side. */
  ask(seat: Seat, method: "GET" | "POST", path: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
    return this.#ask(seat, method, `${seat.prefix}${path}`, body, signal);
  }

  /** Takes a box and who sits in it under its eyes; also a box that an earlier process of ours has left. */
  watch(box: Box, instanceIds: readonly string[]): void {
    const seated = this.#seated.get(box.id) ?? new Set();
    for (const id of instanceIds) seated.add(id);
    if (this.#boxes.has(box.id)) return;
    this.#boxes.set(box.id, box);
    this.#seated.set(box.id, seated);
    void box.exited.then((exit) => {
      this.#boxes.delete(box.id);
      this.#seated.delete(box.id);
      void this.#options.clients.forget(box.id);
      if (seated.size > 0) this.#options.onExit([...seated], exit);
    });
  }

  #ask(seat: Seat, method: "GET" | "POST" | "DELETE", path: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
    const { clients, startTimeoutMs } = this.#options;
    const request = {
      method,
      path,
      timeoutMs: startTimeoutMs,
      ...(body !== undefined && { body }),
      ...(signal !== undefined && { signal }),
    };
    return askBox(clients, seat.boxId, seat.address, request);
  }

  async #claimSpec(environment: EnvironmentVersion, opening: Opening, isolation: Isolation): Promise<ClaimSpec> {
    const { bundleDigest, config, metadata, name, version } = environment;
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
    return {
      folder: await this.#options.bundleFolder(bundleDigest),
      digest: bundleDigest,
      variables: isolation === "shared" ? {} : opening.variables,
      labels: { environment: `${name}@${version}` },
      mayBePrepared: !keepsState,
      warm: warmOf(config),
    };
  }
}

export function isolationOf(config: EnvironmentConfig): Isolation {
  const value = config.deployConfig?.isolation;
  if (value === undefined || value === "instance") return "instance";
  if (value === "shared") return "shared";
  throw new PlatformError(
    "environment.invalid",
    `deployConfig.isolation is ${JSON.stringify(value)}; this server knows "shared" and "instance"`,
  );
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
