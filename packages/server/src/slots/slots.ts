import {
  type EgressPolicy,
  fillPath,
  hostRoutes,
  instancePrefix,
  instanceRoutes,
  isPlatformError,
  MAX_ROLES,
  roleName,
  TASK_SANDBOX,
} from "@aenv/contract";
import type { Sandbox, SandboxEngine, SandboxExit } from "@aenv/sandbox";
import { z } from "zod";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { Links } from "../link/links.ts";
import { askSandbox, exitCauseOf, requestSandbox, type SandboxClients, type SandboxRequest } from "../sandboxes/client.ts";
import { Disposal } from "../sandboxes/disposal.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import type { TaskSandboxPolicy } from "../task-sandboxes/policy.ts";
import type { TaskResources } from "../task-sandboxes/task-resources.ts";
import { bundleGroup, type HostKind, Hosts, type HostsOptions } from "./hosts.ts";
import { createBody, type InitialState } from "./initial-state.ts";
import { isolationOf } from "./isolation.ts";
import { Occupancy } from "./occupancy.ts";
import { hasLink } from "./platform-link.ts";
import type { Pool } from "./pool.ts";
import { explainMissing, type Program, programOf, slotProgramOf } from "./program.ts";
import { ProgramEpisodes } from "./program-episodes.ts";
import { programHost } from "./program-host.ts";
import type { RuntimePolicy } from "./runtimes.ts";
import { SandboxCopies } from "./sandbox-copies.ts";
import type { Slot } from "./slot.ts";
import { type Progress, StartDeadlines } from "./start-deadlines.ts";
import { bundleRequestFor, programRequestFor } from "./start-request.ts";

export interface SlotsOptions extends Omit<HostsOptions, "occupancy"> {
  readonly pool: Pool;
  readonly engine: SandboxEngine;
  readonly space: SnapshotSpace;
  readonly clients: SandboxClients;
  readonly runtimes: RuntimePolicy;
  /** The environment's unpacked bundle. */
  readonly bundleFolder: (digest: string) => Promise<string>;
  readonly startTimeoutMs: number;
  readonly tasks: TaskResources;
  /** The connections over which the processes of environments ask the platform. */
  readonly links: Links;
  /** Called when a sandbox of this server ends, with the instances known to have occupied it. */
  readonly onExit: (sandboxId: string, instanceIds: readonly string[], exit: SandboxExit) => void;
}

/** An instance that runs in a sandbox of another server. */
export interface AdoptedInstance {
  readonly id: string;
  readonly owner: string;
  readonly slot: Slot | null;
  readonly egress?: { readonly agent: EgressPolicy; readonly reward?: EgressPolicy };
  readonly taskSandboxes?: TaskSandboxPolicy;
  readonly platformLink?: boolean;
}

/** The instances that a sandbox reports. `unsure`: it did not answer in time; `gone`: it cannot be reached. */
export type ReportedInstances = ReadonlySet<string> | "unsure" | "gone";

/** Timeout for requests about the occupants of a sandbox. A release that fails is repeated by recovery after a restart. */
const RELEASE_MS = 5_000;
/** An empty host waits this long for the next episode. */
const IDLE_HOST_MS = 60_000;
const IDLE_CONNECTION_MS = 10 * 60_000;

const begunInstance = z.object({ roles: z.array(roleName).min(1).max(MAX_ROLES).optional() });
const instanceList = z.object({ items: z.array(z.object({ id: z.string() })) });

/** Requests of the control API to an instance. */
const requests = {
  reset: { ...instanceRoutes.reset, maxBytes: responseLimits.reset },
  snapshot: { ...instanceRoutes.snapshot, maxBytes: responseLimits.state },
} as const;

/** The start of an instance. */
interface Start {
  readonly environment: EnvironmentVersion;
  readonly owner: string;
  readonly initial: InitialState;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/** Gives each instance a slot in a sandbox and starts it there. The only owner of this server's sandboxes and of their occupancy. */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #occupancy: Occupancy;
  readonly #hosts: Hosts;
  readonly #disposal = new Disposal();
  readonly #deadlines: StartDeadlines;
  readonly #episodes: ProgramEpisodes;
  readonly sandboxCopies: SandboxCopies;

  constructor(options: SlotsOptions) {
    this.#options = options;
    this.#deadlines = new StartDeadlines(options.startTimeoutMs);
    this.#occupancy = new Occupancy({ now: options.now, onExit: (sandbox, ids, exit) => this.#onExit(sandbox, ids, exit) });
    this.#hosts = new Hosts({ ...options, occupancy: this.#occupancy });
    this.#episodes = new ProgramEpisodes({
      request: (slot, request) => this.#request(slot, request),
      ask: (slot, request) => askSandbox(options.clients, slot.sandboxId, slot.address, { ...request, timeoutMs: options.startTimeoutMs }),
    });
    this.sandboxCopies = new SandboxCopies({
      episodes: this.#episodes,
      engine: options.engine,
      space: options.space,
      find: (sandboxId) => this.find(sandboxId),
      request: (slot, request) => this.#request(slot, request),
    });
  }

  get hostCount(): number {
    return this.#hosts.size;
  }

  /** Whether the sandbox is managed by this server. */
  holds(sandboxId: string): boolean {
    return this.#occupancy.find(sandboxId) !== null;
  }

  /** The second container of a sandbox of this server. */
  secondOf(sandboxId: string): Sandbox | null {
    return this.#occupancy.find(sandboxId)?.second ?? null;
  }

  isOccupant(sandboxId: string, instanceId: string): boolean {
    return this.#occupancy.isOccupant(sandboxId, instanceId);
  }

  /** A sandbox of this server, or of another one at this location; also one of a task. */
  async find(sandboxId: string): Promise<Sandbox | null> {
    const own = this.#occupancy.find(sandboxId);
    if (own !== null) return own;
    const all = await this.list();
    const found = all.find(({ id }) => id === sandboxId) ?? all.find(({ second }) => second?.id === sandboxId)?.second;
    return found ?? null;
  }

  /** All sandboxes at this location, those of other servers included. */
  list(): Promise<readonly Sandbox[]> {
    return this.#options.engine.list();
  }

  /** The start timeout covers all of it: the process, its code and the environment's setup. */
  occupy(environment: EnvironmentVersion, owner: string, initial: InitialState, signal: AbortSignal): Promise<Slot> {
    return this.#deadlines.run(initial.id, environment, signal, (deadline, progress) =>
      this.#occupy({ environment, owner, initial, signal: deadline, progress }),
    );
  }

  /** What the start of an instance waits for; null if it goes on. A start that runs out of time meanwhile fails for this reason. */
  noteWait(instanceId: string, why: string | null): void {
    this.#deadlines.noteWait(instanceId, why);
  }

  async #occupy(start: Start): Promise<Slot> {
    const { environment, owner, initial, signal, progress } = start;
    const { bundleFolder, pool, engine } = this.#options;
    if (initial.storedInstance !== undefined) {
      progress.step = "its stored processes do not run yet";
      const stored = { id: initial.storedInstance, owner, ...(initial.egress !== undefined && { egress: { agent: initial.egress } }) };
      return this.occupyCopy(stored, initial.id, { id: initial.sandboxSnapshot ?? "", isTemporary: false }, environment, signal);
    }
    const isolation = isolationOf(environment.config);
    // A program that is shared gets the arguments of an instance when that is created in it.
    const program = programOf(environment, engine, isolation === "shared" ? environment.config.deployConfig?.arguments : initial.arguments);
    if (program !== null) {
      progress.step = "its program has not answered yet";
      if (isolation === "instance") return this.#occupyProgram(program, start);
      return this.#occupySharedProgram(program, start);
    }
    const resources = pool.resourcesFor(environment);
    const needed = bundleRequestFor(environment, owner, initial, engine, { isolation, runtimes: this.#options.runtimes, resources });
    const { tasks } = this.#options;
    const mounts = await tasks.createFolders(initial.id, initial.taskSandboxes, { ...pool.resources, ...resources });
    const request = { ...needed, folder: await bundleFolder(needed.digest), mounts };
    let sandbox: Sandbox;
    let group: string | undefined;
    if (isolation === "shared") {
      const kind: HostKind = { group: bundleGroup(request), start: (stop) => pool.claim(request, stop) };
      ({ sandbox, group } = await this.#hosts.occupy(initial.id, kind, signal));
    } else {
      sandbox = await pool.claim(request, signal).catch(async (error: unknown) => {
        await tasks.release(initial.id);
        throw error;
      });
      this.#occupancy.add(sandbox, initial.id);
    }
    progress.step = "its setup has not finished yet";
    const slot: Slot = {
      sandboxId: sandbox.id,
      address: sandbox.address,
      prefix: instancePrefix(initial.id),
      isOwnSandbox: isolation === "instance",
      ...(group !== undefined && { group }),
    };
    return this.#createIn(sandbox, slot, initial, signal);
  }

  /** Creates the instance in a process that has a slot for it. */
  #createIn(sandbox: Sandbox, slot: Slot, initial: InitialState, signal: AbortSignal): Promise<Slot> {
    return this.#begin(sandbox, slot, initial.id, async () => {
      const { method, path } = hostRoutes.create;
      if (initial.platformLink === true) await this.#options.links.open(sandbox);
      return this.#request(slot, { method, path, maxBytes: responseLimits.instance, body: createBody(initial), signal });
    });
  }

  /** Begins the instance in its slot, which is released if that fails. The record that its process answers names its roles. */
  async #begin(sandbox: Sandbox, slot: Slot, id: string, begin: () => Promise<unknown>): Promise<Slot> {
    try {
      const { roles } = begunInstance.catch({}).parse(await begin());
      return roles === undefined ? slot : { ...slot, roles };
    } catch (error) {
      const cause = await exitCauseOf(sandbox, error);
      await this.release(slot, id);
      throw cause;
    }
  }

  /** A program with the routes of a host is used as a process that has loaded a bundle. */
  async #occupySharedProgram(program: Program, { environment, owner, initial, signal, progress }: Start): Promise<Slot> {
    const { bundleFolder } = this.#options;
    const folder = program.bundleDigest === null ? undefined : await bundleFolder(program.bundleDigest);
    const kind = programHost(program, { environment, owner, initial, folder }, this.#options);
    const { sandbox, group } = await this.#hosts.occupy(initial.id, kind, signal);
    progress.step = "its setup has not finished yet";
    const slot: Slot = { sandboxId: sandbox.id, address: sandbox.address, prefix: instancePrefix(initial.id), isOwnSandbox: false, group };
    return this.#createIn(sandbox, slot, initial, signal);
  }

  /** The program answers for the instance, without the routes of a host. It cannot open a second container, so the server does. */
  async #occupyProgram(program: Program, { environment, owner, initial, signal, progress }: Start): Promise<Slot> {
    const { pool, runtimes, engine, bundleFolder, tasks } = this.#options;
    const { id } = initial;
    const resources = pool.resourcesFor(environment);
    const request = programRequestFor(program, environment, owner, initial, { isolation: "instance", runtimes, resources });
    const folder = program.bundleDigest === null ? undefined : await bundleFolder(program.bundleDigest);
    const mounts = await tasks.createFolders(id, initial.taskSandboxes, { ...pool.resources, ...resources });
    const sandbox = await pool.program({ ...request, folder, mounts }, signal).catch(async (error: unknown) => {
      await tasks.release(id);
      throw explainMissing(error, program, engine);
    });
    const slot = this.#programSlot(sandbox, id, program);
    return this.#begin(sandbox, slot, id, async () => {
      if (initial.taskSandboxes?.hasSecond === true) {
        progress.step = "its second container does not run yet";
        await tasks.sandboxes.open(sandbox.id, id, { purpose: "second", name: TASK_SANDBOX, episode: "" }, signal);
      }
      progress.step = "its episode has not begun yet";
      await this.#episodes.begin(slot, initial, signal);
    });
  }

  #programSlot(sandbox: Sandbox, id: string, program: Program): Slot {
    this.#occupancy.add(sandbox, id);
    return { sandboxId: sandbox.id, address: sandbox.address, prefix: "", isOwnSandbox: true, program: slotProgramOf(program) };
  }

  /** Forks an instance within its own sandbox, which may be another server's. */
  async forkInSandbox(parentId: string, slot: Slot, ids: readonly string[], signal: AbortSignal): Promise<void> {
    this.#occupancy.addForks(slot.sandboxId, ids);
    try {
      const path = fillPath(hostRoutes.fork, { id: parentId });
      await this.#request(slot, { method: hostRoutes.fork.method, path, maxBytes: responseLimits.fork, body: { ids }, signal });
    } catch (error) {
      for (const id of ids) await this.release(slot, id);
      throw error;
    }
  }

  /**
   * A copy of a sandbox with its memory. Its program goes on, or its instance gets a new id. The environment is null if its version was deleted:
   * then the limits are those of the server.
   */
  async occupyCopy(
    parent: Pick<AdoptedInstance, "id" | "owner" | "egress">,
    id: string,
    snapshot: { readonly id: string; readonly isTemporary: boolean },
    environment: EnvironmentVersion | null,
    signal: AbortSignal,
  ): Promise<Slot> {
    const { pool, engine } = this.#options;
    const { id: parentId, owner } = parent;
    const resources = environment === null ? undefined : pool.resourcesFor(environment);
    const copy = { snapshot: snapshot.id, isTemporarySnapshot: snapshot.isTemporary, owner, egress: parent.egress?.agent, resources };
    const program = environment === null ? null : programOf(environment, engine);
    if (program !== null) return this.#programSlot(await pool.copy({ ...copy, program, instanceId: id }, signal), id, program);
    const sandbox = await pool.copy(copy, signal);
    this.#occupancy.add(sandbox, id);
    const slot: Slot = { sandboxId: sandbox.id, address: sandbox.address, prefix: instancePrefix(id), isOwnSandbox: true };
    return this.#begin(sandbox, slot, id, async () => {
      const path = fillPath(hostRoutes.rename, { id: parentId });
      return this.#request(slot, { method: hostRoutes.rename.method, path, maxBytes: responseLimits.instance, body: { id }, signal });
    });
  }

  /** Releases an instance's slot; a sandbox of its own is destroyed. Never fails. */
  async release(slot: Slot, instanceId: string): Promise<void> {
    this.#occupancy.release(slot.sandboxId, instanceId);
    if (slot.isOwnSandbox) {
      const sandbox = await this.find(slot.sandboxId).catch(() => null);
      if (sandbox !== null) await this.destroy(sandbox);
    } else await this.evict({ id: slot.sandboxId, address: slot.address }, instanceId);
    await this.#options.tasks.release(instanceId);
  }

  /** Ends an instance inside a shared sandbox. Never fails. */
  async evict({ id, address }: Pick<Sandbox, "id" | "address">, instanceId: string): Promise<void> {
    const { method } = hostRoutes.delete;
    const path = fillPath(hostRoutes.delete, { id: instanceId });
    const request = { method, path, timeoutMs: RELEASE_MS, maxBytes: responseLimits.instance } as const;
    await requestSandbox(this.#options.clients, id, address, request).catch(() => {});
  }

  async readInstances(sandbox: Sandbox): Promise<ReportedInstances> {
    // The sandbox of a program is its instance.
    if (sandbox.labels.role === "program") return new Set([sandbox.labels.instance ?? ""]);
    try {
      const { method, path } = hostRoutes.list;
      const request = { method, path, timeoutMs: RELEASE_MS, maxBytes: responseLimits.list } as const;
      const { items } = instanceList.parse(await requestSandbox(this.#options.clients, sandbox.id, sandbox.address, request));
      return new Set(items.map(({ id }) => id));
    } catch (error) {
      return isPlatformError(error, "request.timeout") ? "unsure" : "gone";
    }
  }

  /** Destroys a sandbox; a failure is retried later. */
  destroy(sandbox: Sandbox): Promise<void> {
    return this.#disposal.destroy(sandbox);
  }

  /** Sends a request of the control API to an instance, through its trainer API. */
  request(slot: Slot, name: keyof typeof requests, body: unknown, signal: AbortSignal): Promise<unknown> {
    const { method, path, maxBytes } = requests[name];
    return this.#request(slot, { method, path: `${slot.prefix}${path}`, maxBytes, body, signal });
  }

  /** Manages an instance and its sandbox from now on; another server did so before. */
  adopt(instance: AdoptedInstance, sandbox: Sandbox): void {
    const { id, owner, slot, egress, taskSandboxes } = instance;
    sandbox.shared?.takeOver();
    const isKnown = this.#occupancy.isOccupant(sandbox.id, id);
    this.#occupancy.add(sandbox, id);
    // A row of an earlier version names no group: its host gets no new instances.
    if (slot?.isOwnSandbox === false && !isKnown) this.#hosts.adopt(slot.group ?? sandbox.id, sandbox);
    if (taskSandboxes !== undefined) this.#options.tasks.sandboxes.adoptSecond({ id, owner, policy: taskSandboxes }, sandbox);
    // Its process waits for the connection. A program has none.
    if (hasLink(instance) && slot?.program === undefined) this.#options.links.keep(sandbox);
    // The other server may have died while a reward was computed.
    if (egress?.reward !== undefined && !isKnown) void sandbox.egress?.set(egress.agent).catch(() => {});
  }

  /** One round of maintenance, as steps of which each may fail alone. */
  maintenance(): (() => Promise<void> | void)[] {
    const { pool, clients, tasks } = this.#options;
    return [
      () => this.#disposal.retry(),
      () => tasks.tidy(),
      () => this.closeIdleHosts(IDLE_HOST_MS),
      () => pool.trim(),
      () => clients.trim(IDLE_CONNECTION_MS),
    ];
  }

  closeIdleHosts(forMs: number): Promise<void> {
    return this.#hosts.closeIdle(forMs);
  }

  /** Destroys all processes that wait for an instance. */
  closePool(): Promise<void> {
    return this.#options.pool.close();
  }

  /** Destroys the sandboxes of these servers at this location. Needs no store. */
  async destroyAll(serverIds: ReadonlySet<string>, onFailure: (error: unknown) => void): Promise<void> {
    this.#occupancy.clear();
    const sandboxes = (await this.list()).filter(({ labels }) => serverIds.has(labels.server ?? ""));
    await Promise.all(sandboxes.map((sandbox) => sandbox.destroy().catch(onFailure)));
  }

  /** Manages no sandbox any more: later exits are not reported. Waits for those being destroyed, whose files would remain otherwise. */
  async close(): Promise<void> {
    this.#occupancy.clear();
    this.#options.links.close();
    await this.#options.tasks.close();
    await this.#disposal.settled();
  }

  #onExit(sandbox: Sandbox, instanceIds: readonly string[], exit: SandboxExit): void {
    void this.#options.clients.forget(sandbox.id);
    this.#options.links.forget(sandbox.id);
    void this.#options.tasks.releaseHost(sandbox.id, instanceIds);
    this.#options.onExit(sandbox.id, instanceIds, exit);
    // A process that ended by itself has left its files.
    void this.destroy(sandbox);
  }

  #request(slot: Slot, request: Omit<SandboxRequest, "timeoutMs">): Promise<unknown> {
    const { clients, startTimeoutMs } = this.#options;
    return requestSandbox(clients, slot.sandboxId, slot.address, { ...request, timeoutMs: startTimeoutMs });
  }
}
