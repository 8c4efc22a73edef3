import type { Box, SandboxEngine } from "@aenv/sandbox";
import type { Collection } from "../stores/collection.ts";
import { askBox, type BoxClients } from "./box-client.ts";
import type { Hosts } from "./hosts.ts";
import type { Instances } from "./instances.ts";
import type { Placement } from "./placement.ts";
import type { Replicas } from "./replicas.ts";
import type { InstanceRow } from "./row.ts";

export interface RecoveryOptions {
  readonly engine: SandboxEngine;
  readonly rows: Collection<InstanceRow>;
  readonly instances: Instances;
  readonly placement: Placement;
  readonly hosts: Hosts;
  readonly replicas: Replicas;
  readonly clients: BoxClients;
}

/**
 * Puts the rows and what truly runs in agreement, at the start and whenever another replica has died: what still lives is
 * adopted, what is gone is said to be gone, and what nobody owns is ended.
 */
export class Recovery {
  readonly #options: RecoveryOptions;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  async run(): Promise<{ adopted: number; failed: number; ended: number }> {
    const { engine, replicas, rows, instances } = this.#options;
    // Boxes first, rows second: a box that is made in between bears a living replica's name and is left alone.
    const boxes = await engine.list();
    const others = await replicas.others();
    const inGoodHands = await replicas.inGoodHands();
    const orphans = new Map(boxes.filter((box) => !inGoodHands.has(box.labels.replica ?? "")).map((box) => [box.id, box]));
    const elsewhere = new Set(others.filter((one) => !one.isAlive && one.row.place !== replicas.place).map((one) => one.row.id));
    const count = { adopted: 0, failed: 0, ended: 0 };
    const seated = new Map<string, Set<string>>();

    for await (const { value: row } of rows.each({ index: "live", value: "yes" })) {
      if (inGoodHands.has(row.replica)) continue;
      const box = row.seat === null ? undefined : orphans.get(row.seat.boxId);
      if (box !== undefined && (await this.#answers(row))) {
        await this.#adopt(row, box, seated);
        count.adopted++;
      } else {
        const cause = elsewhere.has(row.replica)
          ? "the server that held it died"
          : "its box was gone, or not ready, when the server came back";
        await instances.end(row.id, cause, "Failed");
        count.failed++;
      }
    }
    for (const [id, box] of orphans) {
      const seats = seated.get(id);
      if (seats !== undefined) await this.#clearSeats(box, seats);
      else {
        await box.destroy();
        count.ended++;
      }
    }
    for (const { row, isAlive } of others) if (!isAlive) await replicas.inherit(row.id);
    return count;
  }

  async #adopt(row: InstanceRow, box: Box, seated: Map<string, Set<string>>): Promise<void> {
    const { placement, hosts, instances } = this.#options;
    const seats = seated.get(box.id) ?? new Set();
    seated.set(box.id, seats.add(row.id));
    placement.watch(box, [row.id]);
    if (row.seat !== null && !row.seat.isOwnBox) {
      if (seats.size === 1) hosts.adopt(row.owner, row.digest, box, 1);
      else hosts.sitBeside(box.id, 1);
    }
    await instances.adopt(row);
  }

  async #answers(row: InstanceRow): Promise<boolean> {
    if (row.status !== "Running" || row.seat === null) return false;
    const request = { method: "GET" as const, path: row.seat.prefix, timeoutMs: 2_000 };
    return askBox(this.#options.clients, row.seat.boxId, row.seat.address, request).then(
      () => true,
      () => false,
    );
  }

  /** Ends the seats of an adopted host that belong to no row: they were being made, or being ended, when the server died. */
  async #clearSeats(box: Box, known: ReadonlySet<string>): Promise<void> {
    const { clients } = this.#options;
    const list = (await askBox(clients, box.id, box.address, { method: "GET", path: "/env-instance/list", timeoutMs: 5_000 }).catch(
      () => null,
    )) as {
      items?: { id: string }[];
    } | null;
    for (const { id } of list?.items ?? []) {
      if (known.has(id)) continue;
      await askBox(clients, box.id, box.address, {
        method: "DELETE",
        path: `/env-instance/${encodeURIComponent(id)}`,
        timeoutMs: 5_000,
      }).catch(() => {});
    }
  }
}
