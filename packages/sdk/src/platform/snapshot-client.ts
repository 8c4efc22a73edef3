import { pageOf, type SnapshotRecord, snapshotRecord, snapshotRoutes } from "@aenv/contract";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, type ControlClientOptions, isDeleted, type RequestOptions, requestTo } from "./control-client.ts";
import { eachItem, type Page, type PageRequest } from "./page.ts";
import { readSnapshot } from "./records.ts";

export type SnapshotPage = Page<SnapshotRecord>;

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
    this.#control = new ControlClient(controlUrl, { notFound: "snapshot.not_found" }, options);
  }

  /** One page, by name. */
  async page(filter: PageRequest & { readonly owner?: string } = {}, options: RequestOptions = {}): Promise<SnapshotPage> {
    const request = requestTo(snapshotRoutes.pageSnapshots, {}, { ...filter });
    const data = await this.#control.send({ ...options, ...request, doing: "list snapshots" });
    const { items, next = null } = readAnswer(pageOf(snapshotRecord), data, "the page of snapshots");
    return { items, next };
  }

  /** All of them, requested page by page. */
  each(filter: { readonly owner?: string } = {}, options: RequestOptions = {}): AsyncGenerator<SnapshotRecord> {
    return eachItem((page) => this.page({ ...filter, ...page }, options));
  }

  /** Finds a snapshot by name or id. */
  async get(name: string, options: RequestOptions = {}): Promise<SnapshotRecord> {
    const request = requestTo(snapshotRoutes.getSnapshot, { id: name });
    return readSnapshot(await this.#control.send({ ...options, ...request, doing: `get snapshot '${name}'` }));
  }

  /** Deletes a snapshot by name or id. Instances that were started from it go on. False if there was no such snapshot. */
  delete(name: string, options: RequestOptions = {}): Promise<boolean> {
    const request = requestTo(snapshotRoutes.deleteSnapshot, { id: name });
    return isDeleted(this.#control.send({ ...options, ...request, doing: `delete snapshot '${name}'` }), "snapshot.not_found");
  }
}
