import { fillPath, isPlatformError, pageOf, type SnapshotRecord, snapshotRecord, snapshotRoutes } from "@aenv/contract";
import { withQuery } from "../http/json-client.ts";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import { readSnapshot } from "./records.ts";
import type { RequestOptions } from "./scheduler-client.ts";

export interface SnapshotPage {
  readonly items: readonly SnapshotRecord[];
  /** Cursor of the next page; null at the end. */
  readonly next: string | null;
}

/**
 * Lists and deletes stored snapshots. `env.snapshot({ name })` stores one, and `Environment.create(ref, { snapshot: name })` starts from it.
 *
 * @example
 * const snapshots = new SnapshotClient("http://localhost:8080");
 * for await (const { name, fidelity, bytes } of snapshots.each()) console.log(name, fidelity, bytes);
 */
export class SnapshotClient {
  readonly #control: ControlClient;

  constructor(controlUrl: string, options: ControlClientOptions = {}) {
    this.#control = new ControlClient(controlUrl, options);
  }

  /** One page, by name. */
  async page(
    filter: { readonly owner?: string; readonly limit?: number; readonly after?: string } = {},
    options: RequestOptions = {},
  ): Promise<SnapshotPage> {
    const { method, path } = snapshotRoutes.pageSnapshots;
    const data = await this.#send(method, withQuery(path, { ...filter }), "list snapshots", options);
    const { items, next = null } = readAnswer(pageOf(snapshotRecord), data, "the page of snapshots");
    return { items, next };
  }

  /** All of them, requested page by page. */
  async *each(filter: { readonly owner?: string } = {}, options: RequestOptions = {}): AsyncGenerator<SnapshotRecord> {
    let after: string | null | undefined;
    do {
      const page: SnapshotPage = await this.page({ ...filter, limit: 1_000, ...(after && { after }) }, options);
      yield* page.items;
      after = page.next;
    } while (after !== null);
  }

  /** Finds a snapshot by name or id. */
  async get(name: string, options: RequestOptions = {}): Promise<SnapshotRecord> {
    const { method } = snapshotRoutes.getSnapshot;
    return readSnapshot(await this.#send(method, fillPath(snapshotRoutes.getSnapshot, { id: name }), `get snapshot '${name}'`, options));
  }

  /** Deletes a snapshot by name or id. Instances that were started from it go on. False if there was no such snapshot. */
  async delete(name: string, options: RequestOptions = {}): Promise<boolean> {
    const { method } = snapshotRoutes.deleteSnapshot;
    try {
      await this.#send(method, fillPath(snapshotRoutes.deleteSnapshot, { id: name }), `delete snapshot '${name}'`, options);
      return true;
    } catch (error) {
      if (isPlatformError(error, "snapshot.not_found")) return false;
      throw error;
    }
  }

  #send(method: string, path: string, doing: string, options: RequestOptions): Promise<unknown> {
    return this.#control.send({ ...options, method, path, doing, rule: "idempotent", notFound: "snapshot.not_found" });
  }
}
