import { isPlatformError } from "@aenv/contract";
import type { Sandbox, SandboxEngine } from "@aenv/sandbox";
import { z } from "zod";
import type { Peers } from "../peers/peers.ts";
import { requestSandbox, type SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { Slots } from "../slots/slots.ts";
import type { Collection } from "../stores/collection.ts";
import type { Instances } from "./instances.ts";
import { type InstanceRow, isLive } from "./row.ts";

export interface RecoveryOptions {
  readonly engine: SandboxEngine;
  readonly rows: Collection<InstanceRow>;
  readonly instances: Instances;
  readonly slots: Slots;
  readonly peers: Peers;
  readonly clients: SandboxClients;
  /** After this long no start that another process began goes on in a sandbox. */
  readonly startTimeoutMs: number;
  readonly now: () => number;
}

export interface Recovered {
  readonly adopted: number;
  readonly failed: number;
  readonly ended: number;
}

/** What a sandbox says of who sits in it; `unsure` if it is there but too busy to answer. */
type Seated = ReadonlySet<string> | "unsure" | "gone";

const slotList = z.object({ items: z.array(z.object({ id: z.string() })) });
const ANSWER_MS = 5_000;

/**
 * Puts the rows and what truly runs in agreement, at the start and whenever another server has died: what still lives is
 * adopted, what is gone is said to be gone, and what nobody keeps is ended.
 */
export class Recovery {
  readonly #options: RecoveryOptions;
  /** Shared sandboxes in which a start of the dead process may still have been underway. */
  readonly #doubtful = new Set<Sandbox>();
  /** When nothing that a dead process has begun can be underway any more. */
  #overAt: number | null = null;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  async run(): Promise<Recovered> {
    const { engine, peers, instances, now, startTimeoutMs } = this.#options;
    // In this order: the dead make no more sandboxes, and a sandbox of someone who has come meanwhile bears a living one's name.
    const { dead, ids } = await peers.claimDeadServers();
    const sandboxes = await engine.list();
    const others = await peers.others();
    const isUnknown = (name: string) => !others.ids.has(name) && !peers.ids.includes(name);
    const isOrphan = (name: string) => ids.has(name) || (others.isLast && isUnknown(name));
    const orphans = sandboxes.filter(({ labels: { server = "" } }) => ids.has(server) || (others.isLastHere && isUnknown(server)));

    const lost = await this.#boxless(new Set(orphans.map(({ id }) => id)), isOrphan);
    // First those that got ready: as long as one has not, the next start knows that nobody was told of any of them.
    const groups = [...new Set(lost.flatMap(({ group }) => group ?? []))];
    await eachOf(groups, (group) => instances.loseGroup(group, "the server ended before all forks were ready"));
    await eachOf(lost, ({ id }) => instances.lose(id, "its sandbox was gone, or not ready, when the server came back"));
    const counts = await Promise.all(orphans.map((sandbox) => this.#takeOver(sandbox, isOrphan)));
    const inUse = new Set(sandboxes.map(({ labels }) => labels.server ?? ""));
    for (const row of dead) await peers.markAdopted(row, inUse);
    this.#overAt = now() + startTimeoutMs;
    return sum([{ adopted: 0, failed: lost.length, ended: 0 }, ...counts]);
  }

  /** Gives back the slots of instances that others have ended, and ends what a dead process's starts have left since. */
  async settle(): Promise<void> {
    const { rows, slots, peers, now } = this.#options;
    if (this.#overAt !== null && now() >= this.#overAt) await this.#lookAgain();
    for (const name of peers.ids) {
      for await (const { key, value: row } of rows.each({ index: "leaving", value: name })) {
        if (row.slot !== null) await slots.leave(row.slot, key);
        await rows.update(key, (latest) => (isLive(latest) ? null : { ...latest, slot: null }));
      }
    }
  }

  /** Ends what came to be in the moment of a death: slots that were still being set up, sandboxes that were still ending. */
  async #lookAgain(): Promise<void> {
    const { engine, slots, peers } = this.#options;
    this.#overAt = null;
    for (const sandbox of this.#doubtful) await this.#clearSlots(sandbox, await this.#seatedIn(sandbox));
    this.#doubtful.clear();
    const [, ...inherited] = peers.ids;
    for (const sandbox of await engine.list()) {
      if (!inherited.includes(sandbox.labels.server ?? "") || slots.holds(sandbox.id)) continue;
      if ((await this.#rowsIn(sandbox)).length === 0) await slots.discard(sandbox);
    }
  }

  /** The orphaned instances that run in none of the sandboxes. */
  async #boxless(sandboxIds: ReadonlySet<string>, isOrphan: (serverId: string) => boolean): Promise<InstanceRow[]> {
    const found: InstanceRow[] = [];
    for await (const { value: row } of this.#options.rows.each({ index: "live", value: "yes" })) {
      const isBoxed = row.status === "Running" && row.slot !== null && sandboxIds.has(row.slot.sandboxId);
      if (isOrphan(row.server) && !isBoxed) found.push(row);
    }
    return found;
  }

  async #takeOver(sandbox: Sandbox, isOrphan: (serverId: string) => boolean): Promise<Recovered> {
    const { slots, instances } = this.#options;
    const rows = await this.#rowsIn(sandbox);
    const seated = rows.length === 0 ? "gone" : await this.#seatedIn(sandbox);
    if (seated === "gone") {
      await eachOf(rows, ({ id }) => instances.lose(id, "its sandbox did not answer any more when the server came back"));
      await slots.discard(sandbox);
      return { adopted: 0, failed: rows.length, ended: 1 };
    }
    const isThere = ({ id }: InstanceRow) => seated === "unsure" || seated.has(id);
    const mine = rows.filter((row) => isOrphan(row.server));
    const adopted = mine.filter(isThere);
    const failed = mine.length - adopted.length;
    const missing = mine.filter((row) => !isThere(row));
    await eachOf(missing, (row) => instances.lose(row.id, "its sandbox did not know it any more when the server came back"));
    if (adopted.length === 0 && mine.length === rows.length) {
      await slots.discard(sandbox);
      return { adopted: 0, failed, ended: 1 };
    }
    // Where another server is forking into the sandbox, that goes on, and the sandbox is to be looked after all the same.
    for (const row of rows) if (!isOrphan(row.server) || isThere(row)) slots.adopt(row, sandbox);
    await eachOf(adopted, (row) => instances.adopt(row));
    await this.#clearSlots(sandbox, seated);
    if (rows.some(({ slot }) => slot?.isOwnSandbox === false)) this.#doubtful.add(sandbox);
    return { adopted: adopted.length, failed, ended: 0 };
  }

  async #rowsIn(sandbox: Sandbox): Promise<InstanceRow[]> {
    const found: InstanceRow[] = [];
    for await (const { value } of this.#options.rows.each({ index: "sandbox", value: sandbox.id })) found.push(value);
    return found;
  }

  async #seatedIn(sandbox: Sandbox): Promise<Seated> {
    try {
      const request = { method: "GET", path: "/env-instance/list", timeoutMs: ANSWER_MS, maxBytes: responseLimits.list } as const;
      const { items } = slotList.parse(await requestSandbox(this.#options.clients, sandbox.id, sandbox.address, request));
      return new Set(items.map(({ id }) => id));
    } catch (error) {
      return isPlatformError(error, "request.timeout") ? "unsure" : "gone";
    }
  }

  /** Ends the slots that belong to no row: they were being made, or being ended, when the server died. */
  async #clearSlots(sandbox: Sandbox, seated: Seated): Promise<void> {
    const { rows, clients } = this.#options;
    if (typeof seated === "string") return;
    const known = new Set((await this.#rowsIn(sandbox)).map(({ id }) => id));
    for (const id of seated) {
      if (known.has(id)) continue;
      const row = await rows.find(id);
      // Still on its way to its slot.
      if (row !== null && isLive(row.value)) continue;
      const path = `/env-instance/${encodeURIComponent(id)}`;
      await requestSandbox(clients, sandbox.id, sandbox.address, {
        method: "DELETE",
        path,
        timeoutMs: ANSWER_MS,
        maxBytes: responseLimits.instance,
      }).catch(() => {});
    }
  }
}

/** Changes that wait for the store at the same time: one after the other, many would take long. */
const AT_ONCE = 64;

async function eachOf<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) await Promise.all(all.slice(from, from + AT_ONCE).map(work));
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
