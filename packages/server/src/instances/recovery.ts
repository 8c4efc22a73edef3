import type { Sandbox } from "@aenv/sandbox";
import type { Peers } from "../peers/peers.ts";
import type { ReportedInstances, Slots } from "../slots/slots.ts";
import { instanceOf, isTaskSandbox } from "../task-sandboxes/instance-sandboxes.ts";
import type { TaskResources } from "../task-sandboxes/task-resources.ts";
import type { Instances } from "./instances.ts";
import { type InstanceRow, isLive } from "./row.ts";

export interface RecoveryOptions {
  readonly instances: Instances;
  readonly slots: Slots;
  readonly peers: Peers;
  readonly tasks: TaskResources;
  /** After this time no start of a dead server can still be in progress in a sandbox. */
  readonly startTimeoutMs: number;
  readonly now: () => number;
}

export interface Recovered {
  readonly adopted: number;
  readonly failed: number;
  readonly ended: number;
}

/**
 * Makes the rows and the running sandboxes agree, at the start and whenever another server has died: instances that still run are adopted,
 * those that do not are marked as failed, and sandboxes without an instance are destroyed.
 */
export class Recovery {
  readonly #options: RecoveryOptions;
  /** Shared sandboxes in which a start or a fork of a dead server may still be in progress. */
  readonly #unsettled = new Set<Sandbox>();
  /** When no start of a dead server can be in progress any more. */
  #settledAt: number | null = null;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  async run(): Promise<Recovered> {
    const { slots, peers, instances, now, startTimeoutMs } = this.#options;
    // In this order: dead servers create no more sandboxes, and a sandbox that is created from now on has the label of a living server.
    const { dead, ids } = await peers.claimDeadServers();
    const sandboxes = await slots.list();
    const others = await peers.others();
    const isUnknown = (serverId: string) => !others.ids.has(serverId) && !peers.ids.includes(serverId);
    const isOrphaned = (serverId: string) => ids.has(serverId) || (others.isLast && isUnknown(serverId));
    const left = sandboxes.filter(({ labels: { server = "" } }) => ids.has(server) || (others.isLastHere && isUnknown(server)));
    const orphans = left.filter((sandbox) => !isTaskSandbox(sandbox));

    const lost = await this.#withoutSandbox(new Set(orphans.map(({ id }) => id)), isOrphaned);
    // A group is incomplete while one of it has never run. Its running forks fail first, so that a later recovery still finds the group.
    const neverRan = lost.filter(({ status }) => status !== "Running");
    const groups = [...new Set(neverRan.flatMap(({ group }) => group ?? []))];
    await inBatches(groups, (group) => instances.handover.failGroup(group, "the server ended before all forks were ready"));
    await inBatches(lost, ({ id }) => instances.handover.failLost(id, "its sandbox was gone, or not ready, when the server came back"));
    // A dead server may have been forking into the sandbox of a living one.
    const forkedInto = new Set(lost.flatMap(({ slot }) => slot?.sandboxId ?? []));
    for (const sandbox of sandboxes) if (forkedInto.has(sandbox.id) && !orphans.includes(sandbox)) await this.#evictForks(sandbox);
    const counts = await Promise.all(orphans.map((sandbox) => this.#takeOver(sandbox, isOrphaned)));
    await inBatches(left.filter(isTaskSandbox), (sandbox) => this.#takeOverTask(sandbox));
    await this.#options.tasks.collect();
    const idsInUse = new Set(sandboxes.map(({ labels }) => labels.server ?? ""));
    for (const row of dead) await peers.markAdopted(row, idsInUse);
    this.#settledAt = now() + startTimeoutMs;
    return sum([{ adopted: 0, failed: lost.length, ended: 0 }, ...counts]);
  }

  /** Releases the slots of instances that other servers have ended, and cleans up after starts of dead servers. */
  async settle(): Promise<void> {
    const { instances, peers, now } = this.#options;
    if (this.#settledAt !== null && now() >= this.#settledAt) await this.#cleanUp();
    await instances.handover.releaseSlots(peers.ids);
  }

  /** Ends what was in progress when a server died: instances that were still being created, sandboxes that were still being destroyed. */
  async #cleanUp(): Promise<void> {
    const { slots, peers, instances, tasks, now, startTimeoutMs } = this.#options;
    for (const sandbox of this.#unsettled) {
      const reported = await slots.readInstances(sandbox);
      if (reported === "unsure") continue;
      await this.#evictUnknown(sandbox, reported);
      this.#unsettled.delete(sandbox);
    }
    const [, ...adopted] = peers.ids;
    for (const sandbox of await slots.list()) {
      if (!adopted.includes(sandbox.labels.server ?? "") || slots.holds(sandbox.id)) continue;
      if (isTaskSandbox(sandbox)) {
        if (!tasks.sandboxes.holds(sandbox.id)) await this.#takeOverTask(sandbox);
        continue;
      }
      if ((await instances.inSandbox(sandbox.id)).length === 0) await slots.destroy(sandbox);
    }
    // Only now: if a step has failed, the next round repeats all of them.
    this.#settledAt = this.#unsettled.size === 0 ? null : now() + startTimeoutMs;
  }

  /** The orphaned instances that run in none of the sandboxes. */
  async #withoutSandbox(sandboxIds: ReadonlySet<string>, isOrphaned: (serverId: string) => boolean): Promise<InstanceRow[]> {
    const found: InstanceRow[] = [];
    for await (const row of this.#options.instances.handover.live()) {
      const hasSandbox = row.status === "Running" && row.slot !== null && sandboxIds.has(row.slot.sandboxId);
      if (isOrphaned(row.server) && !hasSandbox) found.push(row);
    }
    return found;
  }

  async #takeOver(sandbox: Sandbox, isOrphaned: (serverId: string) => boolean): Promise<Recovered> {
    const { slots, instances } = this.#options;
    const rows = await instances.inSandbox(sandbox.id);
    // A frozen sandbox would not answer.
    if (rows.some(({ isFrozen }) => isFrozen)) await sandbox.freezing?.thaw();
    const reported = rows.length === 0 ? "gone" : await slots.readInstances(sandbox);
    if (reported === "gone") {
      await inBatches(rows, ({ id }) => instances.handover.failLost(id, "its sandbox did not answer any more when the server came back"));
      await slots.destroy(sandbox);
      return { adopted: 0, failed: rows.length, ended: 1 };
    }
    const isReported = ({ id }: InstanceRow) => reported === "unsure" || reported.has(id);
    const orphaned = rows.filter((row) => isOrphaned(row.server));
    const adopted = orphaned.filter(isReported);
    const missing = orphaned.filter((row) => !isReported(row));
    await inBatches(missing, (row) =>
      instances.handover.failLost(row.id, "its sandbox did not know it any more when the server came back"),
    );
    if (adopted.length === 0 && orphaned.length === rows.length) {
      await slots.destroy(sandbox);
      return { adopted: 0, failed: missing.length, ended: 1 };
    }
    // Another server may be forking into the sandbox: its instances are not adopted, but they occupy the sandbox too.
    for (const row of rows) if (!isOrphaned(row.server) || isReported(row)) slots.adopt(row, sandbox);
    await inBatches(adopted, (row) => instances.handover.adopt(row));
    await this.#evictUnknown(sandbox, reported);
    if (rows.some(({ slot }) => slot?.isOwnSandbox === false)) this.#unsettled.add(sandbox);
    return { adopted: adopted.length, failed: missing.length, ended: 0 };
  }

  /** The request of the dead server may still be in progress, so they are ended again later. */
  async #evictForks(sandbox: Sandbox): Promise<void> {
    await this.#evictUnknown(sandbox, await this.#options.slots.readInstances(sandbox));
    this.#unsettled.add(sandbox);
  }

  /** A sandbox that the code of an instance has opened: it goes on if its instance does. */
  async #takeOverTask(sandbox: Sandbox): Promise<void> {
    const { slots, instances, tasks } = this.#options;
    const row = await instances.find(instanceOf(sandbox));
    const runsHere = row?.status === "Running" && row.slot !== null && slots.holds(row.slot.sandboxId);
    if (!runsHere) return slots.destroy(sandbox);
    // The server may have died while it was frozen.
    await sandbox.freezing?.thaw();
    tasks.adopt(sandbox);
  }

  /** Ends the instances in a sandbox that have no live row. */
  async #evictUnknown(sandbox: Sandbox, reported: ReportedInstances): Promise<void> {
    const { slots, instances } = this.#options;
    if (typeof reported === "string") return;
    const known = new Set((await instances.inSandbox(sandbox.id)).map(({ id }) => id));
    for (const id of reported) {
      if (known.has(id)) continue;
      const row = await instances.find(id);
      // A live row without this slot: the start is still in progress.
      if (row === null || !isLive(row)) await slots.evict(sandbox, id);
    }
  }
}

/** Changes that wait for the store at the same time. */
const BATCH = 64;

async function inBatches<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += BATCH) await Promise.all(all.slice(from, from + BATCH).map(work));
}

function sum(parts: readonly Recovered[]): Recovered {
  const total = { adopted: 0, failed: 0, ended: 0 };
  for (const { adopted, failed, ended } of parts) {
    total.adopted += adopted;
    total.failed += failed;
    total.ended += ended;
  }
  return total;
}
