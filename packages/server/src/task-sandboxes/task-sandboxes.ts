import { setImmediate } from "node:timers/promises";
import { type EgressPolicy, type LinkParameters, PlatformError, TASK_SANDBOX } from "@aenv/contract";
import type { Sandbox, SandboxEngine, SandboxSubject } from "@aenv/sandbox";
import { Disposal } from "../sandboxes/disposal.ts";
import type { InitConnections, OpenSandbox } from "../sandboxes/init-connections.ts";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { admit, memoryOf, requireMemory } from "./admission.ts";
import { InstanceSandboxes, instanceOf, readLabels, type TaskSandbox } from "./instance-sandboxes.ts";
import {
  narrowed,
  noCapabilities,
  noImages,
  noNetworks,
  noTmpfs,
  specFor,
  type TaskSandboxLimits,
  type TaskSandboxPolicy,
  type TaskSandboxSpec,
} from "./policy.ts";
import { sandboxSpec, type WantedSandbox } from "./sandbox-spec.ts";
import { SHARED_PATH, type SharedFolders } from "./shared-folders.ts";

/** The part of an instance's row that is needed here. */
export interface TaskInstance {
  readonly id: string;
  readonly owner: string;
  readonly isLive: boolean;
  /** Its setup has not finished. */
  readonly isStarting: boolean;
  /** The sandbox in which it runs; null while it starts. */
  readonly hostId: string | null;
  readonly policy: TaskSandboxPolicy | undefined;
  /** What people and tools that look at its sandboxes are shown. */
  readonly subject?: SandboxSubject;
}

export interface TaskSandboxesOptions {
  readonly engine: SandboxEngine;
  readonly space: SnapshotSpace;
  readonly serverId: string;
  readonly connections: InitConnections;
  readonly limits: Pick<TaskSandboxLimits, "perInstance" | "perOwner" | "totalMemoryMb">;
  /** Whether the machine has memory for another sandbox. */
  readonly hasMemory: () => boolean;
  /** Resolves when the start of an instance has its turn for the machine's memory. */
  readonly untilMemory: (instanceId: string, signal: AbortSignal) => Promise<void>;
  readonly startTimeoutMs: number;
  readonly sharedFolders: SharedFolders;
  /** Runs the start of a sandbox when it is the owner's turn. */
  readonly start: <T>(owner: string, work: () => Promise<T>, signal: AbortSignal) => Promise<T>;
  readonly findInstance: (id: string) => Promise<TaskInstance | null>;
  /** Whether the instance runs in this sandbox of this server, or is being started there. */
  readonly isOccupant: (hostId: string, instanceId: string) => boolean;
  /** The second container in a sandbox of this server. */
  readonly secondOf: (hostId: string) => Sandbox | null;
}

/** Ended sandboxes of one instance whose reason is remembered. */
const ENDED_KEPT = 32;

/**
 * The sandboxes that the code of instances opens: second containers, sandboxes of tasks, fresh ones for rewards. Each belongs to one
 * instance, which its labels name, and ends with it.
 */
export class TaskSandboxes {
  readonly #options: TaskSandboxesOptions;
  readonly #instances = new Map<string, InstanceSandboxes>();
  readonly #disposal = new Disposal();
  /** Stored sandboxes, for copies of them. */
  readonly #stored = new Map<string, { readonly owner: string; readonly hostId: string; readonly spec: TaskSandboxSpec }>();
  readonly #releasing = new Map<string, Promise<void>>();

  constructor(options: TaskSandboxesOptions) {
    this.#options = options;
  }

  get size(): number {
    let count = 0;
    for (const { open } of this.#instances.values()) count += open.size;
    return count;
  }

  /** Opens a sandbox for an instance that runs in this host. If the signal fires, nothing is left. */
  async open(
    hostId: string,
    instanceId: string,
    request: LinkParameters<"/open">,
    signal: AbortSignal,
  ): Promise<TaskSandbox & { id: string }> {
    const { engine, findInstance, limits, hasMemory, untilMemory } = this.#options;
    const instance = await findInstance(instanceId);
    const policy = instance?.policy;
    if (instance === null || !instance.isLive || !this.#isIn(instance, hostId)) throw notHere(instanceId);
    if (policy === undefined)
      throw new PlatformError(
        "environment.invalid",
        "the environment declares no sandboxes; set deployConfig.taskSandboxes in config.json",
      );
    if (!engine.can.images) throw noImages(engine, "the environment's code opens a sandbox");
    if (request.networks !== undefined && !engine.can.networks)
      throw noNetworks(engine, "the sandboxes of the task need a network of their own");
    if (request.volumes !== undefined && !engine.can.networks) throw noNetworks(engine, "the sandboxes of the task share a volume");
    if (request.program !== undefined && !engine.can.networks) throw noNetworks(engine, "a sandbox of the task is a service for others");
    if ((request.tmpfs !== undefined || request.hosts !== undefined) && !engine.can.tmpfs) throw noTmpfs(engine);
    const known = this.#instances.get(instanceId);
    const spec = this.#specFor(instance.owner, policy, request, known);
    if (spec.capabilities === "docker" && !engine.can.capabilities) throw noCapabilities(engine);
    const mine = known ?? new InstanceSandboxes(instance.owner, hostId);
    this.#instances.set(instanceId, mine);
    const all = () => [...this.#instances.values()];
    const stop = AbortSignal.any([signal, mine.released.signal]);
    // A start waits. Code in the middle of an episode is told at once that there is none.
    if (instance.isStarting && mine.count === 0 && memoryOf(all()) > 0) await untilMemory(instanceId, stop);
    admit(instanceId, mine, request.episode, { ...limits, atOnce: policy.atOnce, all: all() });
    if (mine.count === 0) requireMemory(spec, limits.totalMemoryMb, instance.isStarting ? () => true : hasMemory, all());
    const starting = this.#start(instance, mine, { ...request, spec, policy }, stop);
    mine.starting.set(starting, { episode: request.episode, spec });
    try {
      return await starting;
    } finally {
      mine.starting.delete(starting);
    }
  }

  #specFor(
    owner: string,
    policy: TaskSandboxPolicy,
    request: LinkParameters<"/open">,
    known: InstanceSandboxes | undefined,
  ): TaskSandboxSpec {
    if (request.purpose === "copy") {
      const stored = this.#stored.get(request.snapshot ?? "");
      if (stored?.owner === owner) return stored.spec;
      throw new PlatformError("sandbox.lost", "the stored sandbox does not exist on this server any more; fork the instance again");
    }
    // Only a copy is checked against the owner of what is stored.
    if (request.snapshot !== undefined)
      throw new PlatformError(
        "request.invalid",
        `a sandbox with the purpose '${request.purpose}' does not start from a snapshot; leave it out, or use the purpose 'copy'`,
      );
    const like = request.of === undefined ? null : (known?.open.get(request.of)?.spec ?? null);
    if (request.purpose === "fresh" && like === null) throw ended(request.of ?? "", known);
    return specFor(policy, request, like);
  }

  /** Stores the files of a sandbox, from which `open` makes copies until `removeSnapshot`. */
  async store(hostId: string, instanceId: string, id: string, signal: AbortSignal): Promise<string> {
    const { engine, space } = this.#options;
    const { sandbox, spec } = this.#get(hostId, instanceId, id);
    const { snapshots } = sandbox;
    if (!snapshots?.fidelities.includes("files"))
      throw new PlatformError(
        "instance.unsupported",
        `an instance with open sandboxes cannot be forked: the engine '${engine.name}' does not store their files; use the engine oci`,
      );
    const { id: snapshot } = await space.use(() => snapshots.take("files", signal));
    this.#stored.set(snapshot, { owner: this.#instances.get(instanceId)?.owner ?? "", hostId, spec });
    return snapshot;
  }

  /**
   * Never fails: a snapshot that is left costs disk space, and is removed with the server's others. A host removes only those that its own
   * instances have stored.
   */
  async removeSnapshot(id: string, hostId?: string): Promise<void> {
    if (hostId !== undefined && this.#stored.get(id)?.hostId !== hostId) return;
    if (this.#stored.delete(id)) await this.#options.engine.snapshots?.remove(id).catch(() => {});
  }

  /** Opens the commands and files of a sandbox for its instance. */
  async use(hostId: string, instanceId: string, id: string, signal: AbortSignal): Promise<OpenSandbox> {
    const { engine, connections } = this.#options;
    const { sandbox } = this.#get(hostId, instanceId, id);
    if (engine.commands === undefined)
      throw new PlatformError("sandbox.unsupported", `the engine '${engine.name}' runs no commands in sandboxes`);
    return connections.open(sandbox, signal);
  }

  /** Changes what a sandbox may connect to; undefined for all that its instance may, or its rewards if it is fresh. */
  async setEgress(hostId: string, instanceId: string, id: string, asked: EgressPolicy | undefined): Promise<void> {
    const { engine, findInstance } = this.#options;
    const one = this.#get(hostId, instanceId, id);
    const policy = (await findInstance(instanceId))?.policy;
    if (policy === undefined) throw notHere(instanceId);
    const egress = narrowed(policy, asked, one.spec.isFresh);
    if (egress === undefined || one.sandbox.egress === undefined)
      throw new PlatformError(
        "sandbox.unsupported",
        `the connections of the sandbox '${one.name}' cannot be changed while it runs: the engine '${engine.name}' of this server sets them at its start`,
      );
    await one.sandbox.egress.set(egress);
    // Fresh sandboxes and copies are like this one.
    const { open } = this.#instances.get(instanceId) ?? {};
    if (open?.has(id)) open.set(id, { ...one, spec: { ...one.spec, egress } });
  }

  /** Closes a sandbox. One that has ended is no error. */
  async closeOne(hostId: string, instanceId: string, id: string): Promise<void> {
    const mine = this.#instances.get(instanceId);
    if (mine === undefined || mine.hostId !== hostId) return;
    const found = mine.open.get(id);
    mine.open.delete(id);
    mine.ended.delete(id);
    if (found !== undefined) await this.#disposal.destroy(found.sandbox);
  }

  /** The task's sandbox with this name, for the instance's owner; also of an instance of another server at this location. */
  async findNamed(instanceId: string, name: string): Promise<Sandbox | null> {
    const mine = this.#instances.get(instanceId);
    if (mine !== undefined) return mine.named(name)?.sandbox ?? null;
    const all = await this.#options.engine.list();
    const own = all.findLast((sandbox) => instanceOf(sandbox) === instanceId && sandbox.labels.name === name);
    if (own !== undefined || name !== TASK_SANDBOX) return own ?? null;
    const hostId = (await this.#options.findInstance(instanceId))?.hostId ?? "";
    return all.find(({ id }) => id === hostId)?.second ?? null;
  }

  /** The instance whose code has opened this sandbox; null if none has. */
  instanceOf(sandboxId: string): string | null {
    for (const [id, { open }] of this.#instances) if (open.has(sandboxId)) return id;
    return null;
  }

  of(instanceId: string): readonly Sandbox[] {
    return [...(this.#instances.get(instanceId)?.open.values() ?? [])].map(({ sandbox }) => sandbox);
  }

  /** Ends all sandboxes of an instance that has ended. Never fails: what cannot be destroyed now is tried again. */
  async release(instanceId: string): Promise<void> {
    const mine = this.#instances.get(instanceId);
    // Another caller may be at it, which is waited for too.
    if (mine === undefined) return this.#releasing.get(instanceId);
    this.#instances.delete(instanceId);
    const releasing = this.#release(instanceId, mine).finally(() => this.#releasing.delete(instanceId));
    this.#releasing.set(instanceId, releasing);
    await releasing;
  }

  async #release(instanceId: string, mine: InstanceSandboxes): Promise<void> {
    mine.released.abort(new PlatformError("instance.gone", `instance '${instanceId}' has ended`));
    await Promise.allSettled(mine.starting.keys());
    await Promise.all([...mine.open.values()].map(({ sandbox }) => this.#disposal.destroy(sandbox)));
  }

  /** The same for all instances of a process that has ended. */
  async releaseHost(hostId: string): Promise<void> {
    const ids = [...this.#instances].filter(([, mine]) => mine.hostId === hostId).map(([id]) => id);
    await Promise.all(ids.map((id) => this.release(id)));
  }

  /** Manages a sandbox of a server that has ended. Its instance runs in a host of this server now. */
  adopt(sandbox: Sandbox): void {
    const { instance, owner, host, name, episode, spec } = readLabels(sandbox);
    const mine = this.#instances.get(instance) ?? new InstanceSandboxes(owner, host);
    this.#instances.set(instance, mine);
    if (!mine.open.has(sandbox.id)) this.#watch(mine, { sandbox, name, episode, spec });
  }

  holds(sandboxId: string): boolean {
    return this.instanceOf(sandboxId) !== null || this.#disposal.holds(sandboxId);
  }

  async freeze(instanceId: string): Promise<void> {
    await Promise.all(this.of(instanceId).map((sandbox) => sandbox.freezing?.freeze()));
  }

  /** Also those of an instance of another server at this location. */
  async thaw(instanceId: string): Promise<void> {
    const isMine = this.#instances.has(instanceId);
    const all = isMine ? this.of(instanceId) : (await this.#options.engine.list()).filter((one) => instanceOf(one) === instanceId);
    await Promise.all(all.map((sandbox) => sandbox.freezing?.thaw()));
  }

  /** Destroys what could not be destroyed before. */
  retry(): Promise<void> {
    return this.#disposal.retry();
  }

  /** Destroys what belongs to instances that have ended, for example on another server. */
  async collect(): Promise<void> {
    for (const id of [...this.#instances.keys()]) if (!(await this.isLive(id))) await this.release(id);
  }

  async isLive(instanceId: string): Promise<boolean> {
    return (await this.#options.findInstance(instanceId))?.isLive === true;
  }

  /** Manages nothing any more. Waits for sandboxes that are being destroyed. */
  async close(): Promise<void> {
    const starting = [...this.#instances.values()].flatMap((mine) => [...mine.starting.keys()]);
    for (const { released } of this.#instances.values())
      released.abort(new PlatformError("server.draining", "the server is shutting down"));
    await Promise.allSettled(starting);
    this.#instances.clear();
    await this.#disposal.settled();
  }

  async #start(
    instance: TaskInstance,
    mine: InstanceSandboxes,
    wanted: WantedSandbox,
    signal: AbortSignal,
  ): Promise<TaskSandbox & { id: string }> {
    const { engine, serverId, start, startTimeoutMs, sharedFolders } = this.#options;
    const { name, episode, spec, policy } = wanted;
    const settings = { serverId, hostId: mine.hostId, startTimeoutMs, sharedFolder: sharedFolders.pathOf(instance.id) };
    const create = () => engine.create(sandboxSpec(instance, wanted, settings), signal);
    const inside = wanted.purpose === "second" ? await this.#secondInside(mine, policy, signal) : null;
    const sandbox = inside ?? (await start(instance.owner, create, signal));
    if (!signal.aborted) return { ...this.#watch(mine, { sandbox, name, episode, spec }), id: sandbox.id };
    await this.#disposal.destroy(sandbox);
    throw signal.reason;
  }

  /**
   * The second container in the instance's own sandbox, before the first episode. It cannot be started again, so that of a later episode is
   * a sandbox of its own, without the folder that the two share. An environment that uses the folder is told so, and keeps its episode.
   */
  async #secondInside(
    { hostId, open }: InstanceSandboxes,
    { isSecondInside }: TaskSandboxPolicy,
    signal: AbortSignal,
  ): Promise<Sandbox | null> {
    const second = isSecondInside === true ? this.#options.secondOf(hostId) : null;
    if (second === null) return null;
    const hasEnded = await Promise.race([second.exited.then(() => true), setImmediate(false)]);
    if (hasEnded) return null;
    // While an episode is reset, it still has its own.
    if (!open.has(second.id)) return second;
    if (await this.#hasShared(second, signal))
      throw new PlatformError(
        "instance.unsupported",
        `the second container has files in ${SHARED_PATH}, which it would not have after a reset: with the engine '${this.#options.engine.name}' it is then a sandbox of its own; create a new instance for each episode, or remove these files first`,
      );
    return null;
  }

  async #hasShared(second: Sandbox, signal: AbortSignal): Promise<boolean> {
    const { init, release } = await this.#options.connections.open(second, signal);
    try {
      // A template may have no such folder.
      const { files } = await init.files.list({ path: SHARED_PATH, limit: 1, abort: signal }).catch(() => ({ files: [] }));
      return files.length > 0;
    } finally {
      release();
    }
  }

  /** Manages the second container in the sandbox of an instance that another server has started. */
  adoptSecond({ id, owner, policy }: Pick<TaskInstance, "id" | "owner"> & { readonly policy: TaskSandboxPolicy }, host: Sandbox): void {
    if (policy.isSecondInside !== true || host.second === undefined) return;
    const mine = this.#instances.get(id) ?? new InstanceSandboxes(owner, host.id);
    this.#instances.set(id, mine);
    const spec = specFor(policy, { purpose: "second", name: TASK_SANDBOX, episode: "" }, null);
    if (!mine.open.has(host.second.id)) this.#watch(mine, { sandbox: host.second, name: TASK_SANDBOX, episode: "", spec });
  }

  #watch(mine: InstanceSandboxes, one: TaskSandbox): TaskSandbox {
    const { sandbox } = one;
    mine.open.set(sandbox.id, one);
    void sandbox.exited.then(async ({ reason }) => {
      if (!mine.open.delete(sandbox.id)) return;
      mine.ended.set(sandbox.id, reason);
      const [oldest] = mine.ended.keys();
      if (mine.ended.size > ENDED_KEPT && oldest !== undefined) mine.ended.delete(oldest);
      // It has left its files.
      await this.#disposal.destroy(sandbox);
    });
    return one;
  }

  #get(hostId: string, instanceId: string, id: string): TaskSandbox {
    const mine = this.#instances.get(instanceId);
    if (mine !== undefined && mine.hostId !== hostId) throw notHere(instanceId);
    const found = mine?.open.get(id);
    if (found === undefined) throw ended(id, mine);
    return found;
  }

  #isIn({ id, hostId }: TaskInstance, host: string): boolean {
    return hostId === host || this.#options.isOccupant(host, id);
  }
}

function ended(id: string, mine: InstanceSandboxes | undefined): PlatformError {
  const reason = mine?.ended.get(id);
  return new PlatformError(
    "sandbox.lost",
    `the sandbox '${id}' ${reason === undefined ? "does not exist any more" : `has ended: ${reason}`}`,
  );
}

/** A process may act for its own instances only. */
function notHere(instanceId: string): PlatformError {
  return new PlatformError("instance.not_found", `instance '${instanceId}' does not run in this process`);
}
