import { type EnvironmentStatus, isObject, PlatformError, parseName, parseRef, splitRef, type Visibility } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { Store } from "../stores/store.ts";
import type { BlobStore } from "./archives/blobs.ts";
import type { Bundles } from "./bundles/bundles.ts";
import { contentDigestOf, parsePublication, parseStatus, parseVisibility } from "./publishing/publication.ts";
import { type Inspect, type Published, Publisher, taken } from "./publishing/publisher.ts";
import { Transfers } from "./publishing/transfers.ts";
import { notFound, Shelf } from "./versions/catalog.ts";
import { type EnvironmentVersion, type VersionRow, versionKey } from "./versions/environment-version.ts";
import { byNewest, highestWithin, latest } from "./versions/order.ts";
import { Removal } from "./versions/removal.ts";
import { demandName, demandPublisher, maySee } from "./versions/rights.ts";
import { type ListQuery, type Page, searchFor } from "./versions/search.ts";
import { type Alteration, altered } from "./versions/version-change.ts";

export type { Published } from "./publishing/publisher.ts";
export type { Download } from "./publishing/transfers.ts";
export type { EnvironmentVersion, Metadata, VersionEvent } from "./versions/environment-version.ts";
export type { ListQuery, Page } from "./versions/search.ts";

export interface HubOptions {
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly bundles: Bundles;
  /** Starts the bundle in a folder and finds out what it offers; rejects with the reason if it does not start. */
  readonly inspect: Inspect;
  /** The most processes that an environment may ask to be kept ready with `deployConfig.warm`: any number unless told otherwise. */
  readonly maxWarm?: number;
  /** Whether instances of a version run. */
  readonly isInUse: (name: string, version: string) => Promise<boolean>;
  readonly now: () => Date;
  /** Of a name's first version, if its publisher does not say: private unless told otherwise. */
  readonly visibility?: Visibility;
  /** How many versions one owner may publish. */
  readonly maxVersions?: number;
}

export interface PublishOptions {
  /** Starts the bundle first; true unless it is said. */
  readonly verify?: boolean;
  /** Fires when the client has left; a version that is not verified by then is not published. */
  readonly signal?: AbortSignal | undefined;
}

const NO_CHANGE: Alteration = { status: null, visibility: null, sharedWith: null };

/**
 * Where environments are published and found. A version never changes once it is published; whoever may not see one is
 * told, by every method, that there is none.
 */
export class Hub {
  /** Archives on their way in and out. */
  readonly transfers: Transfers;
  readonly #options: HubOptions;
  readonly #shelf: Shelf;
  readonly #publisher: Publisher;
  readonly #removal: Removal;

  constructor(options: HubOptions) {
    const { store, blobs, bundles, inspect, isInUse, now, visibility = "private", maxVersions = 10_000, maxWarm } = options;
    const shelf = new Shelf(store, maxVersions);
    this.#options = options;
    this.#shelf = shelf;
    this.transfers = new Transfers({ store, shelf, blobs, now });
    const resolve = (ref: string, caller: Caller) => this.resolve(ref, caller);
    this.#publisher = new Publisher({ shelf, transfers: this.transfers, blobs, bundles, inspect, resolve, now, visibility, maxWarm });
    this.#removal = new Removal({ shelf, holdings: blobs.holdings, isInUse, now });
  }

  /**
   * Publishes a version from what the original's clients send, and our own fields. The same again changes nothing;
   * anything else under the same version is refused. With `verify`, a bundle is started to find out what it offers.
   */
  publish(upsert: unknown, caller: Caller, { verify = true, signal }: PublishOptions = {}): Promise<Published> {
    return this.#publisher.publish(upsert, caller, verify, signal);
  }

  /** The original's partial change. What a version is made of stays; its status and who sees it may change. */
  async update(name: string, version: string, patch: unknown, caller: Caller): Promise<EnvironmentVersion> {
    const row = await this.#own(name, version, caller);
    if (!isObject(patch)) throw new PlatformError("request.invalid", "Invalid request format: the body must be an object");
    for (const [field, here] of Object.entries({ name, version })) {
      if (!patch[field] || patch[field] === here) continue;
      throw new PlatformError(
        "request.invalid",
        `the path says ${field} '${here}', the body ${JSON.stringify(patch[field]).slice(0, 100)}`,
      );
    }
    const given = Object.entries(patch).filter(([, value]) => value !== null && value !== "");
    const { config, artifacts } = await this.#shelf.content(row.contentDigest);
    const publication = parsePublication({ ...config, artifacts, ...Object.fromEntries(given) });
    const source = (await this.transfers.take(name, version, caller)) ?? row.sourceDigest;
    if (contentDigestOf(publication, source) !== row.contentDigest) throw taken(row);
    return this.#alter(row, publication, caller);
  }

  async get(name: string, version: string, caller: Caller): Promise<EnvironmentVersion> {
    return this.#shelf.whole(await this.#shelf.get(name, version, caller));
  }

  async exists(name: string, version: string, caller: Caller): Promise<{ exists: true; status: EnvironmentStatus } | { exists: false }> {
    const row = await this.#shelf.rows.find(versionKey(name, version));
    return row !== null && maySee(row.value, caller) ? { exists: true, status: row.value.status } : { exists: false };
  }

  async status(name: string, version: string, caller: Caller): Promise<EnvironmentStatus> {
    return (await this.#shelf.get(name, version, caller)).status;
  }

  /** One page of what the caller may see, by name and newest first, and how much there is in all. */
  async list(query: ListQuery, caller: Caller): Promise<Page<EnvironmentVersion>> {
    const { items, total } = await searchFor(this.#shelf.rows, query, caller);
    return { items: await Promise.all(items.map((row) => this.#shelf.whole(row))), total };
  }

  /** A name's versions, newest first, each with its story. */
  async versions(name: string, caller: Caller): Promise<Omit<VersionRow, "isRemoved">[]> {
    const rows = await this.#shelf.versions(name, caller);
    if (rows.length === 0) throw notFound(name, []);
    return rows.sort(byNewest).map(({ isRemoved: _, ...row }) => row);
  }

  /** The version that `name`, `name@latest`, `name@1.0.0` or `name@^1.2` means to this caller. */
  async resolve(ref: string, caller: Caller): Promise<EnvironmentVersion> {
    const { name, version } = ref.includes("@") ? parseRef(ref) : splitRef(ref);
    parseName(name);
    const isOpen = version === "" || version === "latest";
    const exact = isOpen ? null : await this.#shelf.rows.find(versionKey(name, version));
    if (exact !== null && maySee(exact.value, caller)) return this.#shelf.whole(exact.value);
    const rows = await this.#shelf.versions(name, caller);
    const sound = rows.filter((row) => row.status !== "Failed");
    const found = isOpen ? latest(sound) : highestWithin(sound, version);
    if (found === null) throw notFound(ref, rows);
    return this.#shelf.whole(found);
  }

  /** Whether a version is the one that its bare name means to whoever sees all of them, an older one, or not there. */
  async standingOf(name: string, version: string): Promise<"newest" | "superseded" | "gone"> {
    const rows = (await this.#shelf.standing(name)).map(({ value }) => value);
    if (!rows.some((row) => row.version === version)) return "gone";
    return latest(rows.filter((row) => row.status !== "Failed"))?.version === version ? "newest" : "superseded";
  }

  /** From now on only an administrator takes it away, and its number is never given to anything else. */
  async release(name: string, version: string, caller: Caller): Promise<EnvironmentVersion> {
    const row = await this.#own(name, version, caller);
    if (row.status === "Released") throw new PlatformError("environment.released", "Environment already released");
    return this.#alter(row, { ...NO_CHANGE, status: "Released" }, caller);
  }

  async setStatus(name: string, version: string, status: unknown, caller: Caller): Promise<EnvironmentVersion> {
    const row = await this.#own(name, version, caller);
    return this.#alter(row, { ...NO_CHANGE, status: parseStatus(status) }, caller);
  }

  async setVisibility(
    name: string,
    version: string,
    wish: { readonly visibility?: unknown; readonly sharedWith?: unknown },
    caller: Caller,
  ): Promise<EnvironmentVersion> {
    const row = await this.#own(name, version, caller);
    return this.#alter(row, { ...NO_CHANGE, ...parseVisibility(wish.visibility, wish.sharedWith) }, caller);
  }

  /** Takes away a version, or with null every version of a name or none; answers which. */
  remove(name: string, version: string | null, caller: Caller): Promise<string[]> {
    return this.#removal.remove(name, version, caller);
  }

  /** The unpacked and verified bundle: main.js, config.json, manifest.json and the data. Never to be written to. */
  bundleFolder(digest: string): Promise<string> {
    return this.#options.bundles.folder(digest);
  }

  /** Sweeps out what nothing refers to any more, and answers the digests that are gone; to be called now and then. */
  async collect(): Promise<ReadonlySet<string>> {
    const { blobs, bundles, now } = this.#options;
    const referenced = await this.transfers.collect();
    for await (const { value } of this.#shelf.rows.each({ index: "all", value: "yes" })) {
      for (const digest of [value.bundleDigest, value.sourceDigest]) if (digest !== null) referenced.add(digest);
    }
    const gone = await blobs.collect(referenced);
    await bundles.collect(gone);
    await this.#shelf.collect(now());
    return gone;
  }

  /** A version that the caller sees and may change. */
  async #own(name: string, version: string, caller: Caller): Promise<VersionRow> {
    const row = await this.#shelf.get(name, version, caller);
    demandPublisher(caller);
    demandName(name, row.owner, caller);
    return row;
  }

  async #alter({ name, version }: VersionRow, wish: Alteration, caller: Caller): Promise<EnvironmentVersion> {
    const { now } = this.#options;
    return this.#shelf.whole(await this.#shelf.change(name, version, caller, (row) => altered(row, wish, caller.owner, now())));
  }
}
