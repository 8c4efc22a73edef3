import { Readable } from "node:stream";
import { type EnvironmentStatus, isObject, PlatformError, parseName, parseRef, splitRef, type Visibility } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { Store } from "../stores/store.ts";
import type { BlobStore } from "./archives/blobs.ts";
import { type BuiltInBundle, BuiltInPublications, type BuiltIns, PLATFORM } from "./built-ins.ts";
import type { Bundles } from "./bundles/bundles.ts";
import { contentDigestOf, parsePublication, parseStatus, parseVisibility } from "./publishing/publication.ts";
import { type Inspect, type Published, Publisher, versionExists } from "./publishing/publisher.ts";
import { Transfers } from "./publishing/transfers.ts";
import { notFound, VersionCatalog } from "./versions/catalog.ts";
import { type EnvironmentVersion, type PinnedChild, type VersionRow, versionKey } from "./versions/environment-version.ts";
import { byNewest, highestInRange, latest } from "./versions/order.ts";
import { Removal } from "./versions/removal.ts";
import { assertNameAllowed, assertPublisher, maySee } from "./versions/rights.ts";
import { type ListQuery, type Page, searchFor } from "./versions/search.ts";
import { applyChange, type VersionChange } from "./versions/version-change.ts";

export type { Published } from "./publishing/publisher.ts";
export type { Download } from "./publishing/transfers.ts";
export type { EnvironmentVersion, Metadata, PinnedChild, VersionEvent } from "./versions/environment-version.ts";
export type { ListQuery, Page } from "./versions/search.ts";

export interface HubOptions {
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly bundles: Bundles;
  /** Starts the bundle in a folder and reads what it offers; rejects with the reason if it does not start. */
  readonly inspect: Inspect;
  /** The highest allowed `deployConfig.warm`; unlimited by default. */
  readonly maxWarm?: number;
  /** Whether a version has live instances. */
  readonly isInUse: (name: string, version: string) => Promise<boolean>;
  readonly now: () => Date;
  /** The default visibility of a name's first version; private by default. */
  readonly visibility?: Visibility;
  /** The number of versions that one owner may publish. */
  readonly maxVersions?: number;
  /** Published at their first use; none by default. */
  readonly builtIns?: BuiltIns;
}

export interface PublishOptions {
  /** Whether the bundle is started first; true by default. */
  readonly verify?: boolean;
  /** Aborted when the client disconnects; a version that is not verified by then is not published. */
  readonly signal?: AbortSignal | undefined;
}

const NO_CHANGE: VersionChange = { status: null, visibility: null, sharedWith: null };

/**
 * Publishes and finds environments. A published version never changes. Every method reports a version that the caller may
 * not see as not found.
 */
export class Hub {
  /** Uploads and downloads of archives. */
  readonly transfers: Transfers;
  readonly #options: HubOptions;
  readonly #catalog: VersionCatalog;
  readonly #publisher: Publisher;
  readonly #removal: Removal;
  readonly #builtIns: BuiltInPublications | null;

  constructor(options: HubOptions) {
    const { store, blobs, bundles, inspect, isInUse, now, visibility = "private", maxVersions = 10_000, maxWarm } = options;
    const catalog = new VersionCatalog(store, maxVersions);
    this.#options = options;
    this.#catalog = catalog;
    this.transfers = new Transfers({ store, catalog, blobs, now });
    const resolve = (ref: string, caller: Caller) => this.resolve(ref, caller);
    const pinned = (child: PinnedChild) => this.pinned(child);
    this.#publisher = new Publisher({
      catalog,
      transfers: this.transfers,
      blobs,
      bundles,
      inspect,
      resolve,
      pinned,
      now,
      visibility,
      maxWarm,
    });
    this.#builtIns =
      options.builtIns === undefined
        ? null
        : new BuiltInPublications({ builtIns: options.builtIns, publish: (bundle) => this.#publishBuiltIn(bundle) });
    this.#removal = new Removal({ catalog, ownership: blobs.ownership, isInUse, now });
  }

  /**
   * Publishes a version from what the original's clients send, with additional fields. Publishing identical content again is a
   * no-op; different content needs a new version. With `verify`, the bundle is started to read what it offers.
   */
  publish(upsert: unknown, caller: Caller, { verify = true, signal }: PublishOptions = {}): Promise<Published> {
    return this.#publisher.publish(upsert, caller, verify, signal);
  }

  /** The original's partial update. Only status and visibility may change, not the content. */
  async update(name: string, version: string, patch: unknown, caller: Caller): Promise<EnvironmentVersion> {
    const row = await this.#getWritable(name, version, caller);
    if (!isObject(patch)) throw new PlatformError("request.invalid", "Invalid request format: the body must be an object");
    for (const [field, here] of Object.entries({ name, version })) {
      if (!patch[field] || patch[field] === here) continue;
      throw new PlatformError(
        "request.invalid",
        `the path says ${field} '${here}', the body ${JSON.stringify(patch[field]).slice(0, 100)}`,
      );
    }
    const given = Object.entries(patch).filter(([, value]) => value !== null && value !== "");
    const { config, artifacts } = await this.#catalog.content(row.contentDigest);
    const publication = parsePublication({ ...config, artifacts, ...Object.fromEntries(given) });
    const source = (await this.transfers.takeSource(name, version, caller)) ?? row.sourceDigest;
    if (contentDigestOf(publication, source) !== row.contentDigest) throw versionExists(row);
    return this.#change(row, publication, caller);
  }

  async get(name: string, version: string, caller: Caller): Promise<EnvironmentVersion> {
    const row = await this.#catalog.rows.find(versionKey(name, version));
    if (row === null) await this.#offerBuiltIn(name, version, caller);
    return this.#catalog.load(await this.#catalog.get(name, version, caller));
  }

  async exists(name: string, version: string, caller: Caller): Promise<{ exists: true; status: EnvironmentStatus } | { exists: false }> {
    const row = await this.#catalog.rows.find(versionKey(name, version));
    return row !== null && maySee(row.value, caller) ? { exists: true, status: row.value.status } : { exists: false };
  }

  async status(name: string, version: string, caller: Caller): Promise<EnvironmentStatus> {
    return (await this.#catalog.get(name, version, caller)).status;
  }

  /** One page of the versions that the caller may see, sorted by name and newest first, and their total number. */
  async list(query: ListQuery, caller: Caller): Promise<Page<EnvironmentVersion>> {
    const { items, total } = await searchFor(this.#catalog.rows, query, caller);
    return { items: await Promise.all(items.map((row) => this.#catalog.load(row))), total };
  }

  /** A name's versions with their history, newest first. */
  async versions(name: string, caller: Caller): Promise<Omit<VersionRow, "isRemoved">[]> {
    const rows = await this.#catalog.versions(name, caller);
    if (rows.length === 0) throw notFound(name, []);
    return rows.sort(byNewest).map(({ isRemoved: _, ...row }) => row);
  }

  /** The version that `name`, `name@latest`, `name@1.0.0` or `name@^1.2` resolves to for this caller. */
  async resolve(ref: string, caller: Caller): Promise<EnvironmentVersion> {
    const { name, version } = ref.includes("@") ? parseRef(ref) : splitRef(ref);
    parseName(name);
    const isLatest = version === "" || version === "latest";
    const exact = isLatest ? null : await this.#catalog.rows.find(versionKey(name, version));
    if (exact !== null && maySee(exact.value, caller)) return this.#catalog.load(exact.value);
    const rows = await this.#catalog.versions(name, caller);
    const usable = rows.filter((row) => row.status !== "Failed");
    const found = isLatest ? latest(usable) : highestInRange(usable, version);
    if (found === null && (await this.#offerBuiltIn(name, version, caller))) return this.resolve(ref, caller);
    if (found === null) throw notFound(ref, rows);
    return this.#catalog.load(found);
  }

  /** The version of a child that another version was published with. Who may use the parent may use it, so visibility is ignored. */
  async pinned({ name, environment, contentDigest }: PinnedChild): Promise<EnvironmentVersion> {
    const key = versionKey(environment.name, environment.version);
    const row = await this.#catalog.rows.find(key);
    if (row !== null && !row.value.isRemoved && row.value.contentDigest === contentDigest) return this.#catalog.load(row.value);
    throw new PlatformError("environment.not_found", `the child '${name}' is ${key}, which does not exist any more`);
  }

  /** Whether a version is the newest of its name, superseded, or gone; visibility is ignored. */
  async recencyOf(name: string, version: string): Promise<"newest" | "superseded" | "gone"> {
    const rows = (await this.#catalog.rowsOf(name)).map(({ value }) => value);
    if (!rows.some((row) => row.version === version)) return "gone";
    return latest(rows.filter((row) => row.status !== "Failed"))?.version === version ? "newest" : "superseded";
  }

  /** A released version can be deleted only by an administrator, and its number is never reused for other content. */
  async release(name: string, version: string, caller: Caller): Promise<EnvironmentVersion> {
    const row = await this.#getWritable(name, version, caller);
    if (row.status === "Released") throw new PlatformError("environment.released", "Environment already released");
    return this.#change(row, { ...NO_CHANGE, status: "Released" }, caller);
  }

  async setStatus(name: string, version: string, status: unknown, caller: Caller): Promise<EnvironmentVersion> {
    const row = await this.#getWritable(name, version, caller);
    return this.#change(row, { ...NO_CHANGE, status: parseStatus(status) }, caller);
  }

  async setVisibility(
    name: string,
    version: string,
    given: { readonly visibility?: unknown; readonly sharedWith?: unknown },
    caller: Caller,
  ): Promise<EnvironmentVersion> {
    const row = await this.#getWritable(name, version, caller);
    return this.#change(row, { ...NO_CHANGE, ...parseVisibility(given.visibility, given.sharedWith) }, caller);
  }

  /** Deletes one version, or all of a name if `version` is null (all or none). Returns the deleted versions. */
  remove(name: string, version: string | null, caller: Caller): Promise<string[]> {
    return this.#removal.remove(name, version, caller);
  }

  /** The folder of the unpacked and verified bundle: main.js, config.json, manifest.json and the data. Read-only. */
  bundleFolder(digest: string): Promise<string> {
    return this.#options.bundles.folder(digest);
  }

  /** Deletes unreferenced archives and rows; returns the digests of the deleted archives. Called periodically. */
  async collect(): Promise<ReadonlySet<string>> {
    const { blobs, bundles, now } = this.#options;
    const referenced = await this.transfers.collect();
    for await (const { value } of this.#catalog.rows.each({ index: "all", value: "yes" })) {
      for (const digest of [value.bundleDigest, value.sourceDigest]) if (digest !== null) referenced.add(digest);
    }
    const gone = await blobs.collect(referenced);
    await bundles.collect(gone);
    await this.#catalog.collect(now());
    return gone;
  }

  /**
   * Publishes a built-in environment of this name and version if there is one; not under a name that somebody else has taken. Who sees
   * another version of it there is told how this one is published.
   */
  async #offerBuiltIn(name: string, version: string, caller: Caller): Promise<boolean> {
    const own = this.#builtIns?.versionOf(name) ?? null;
    if (this.#builtIns === null || own === null) return false;
    const owner = await this.#catalog.ownerOf(name);
    if (owner === null || owner === PLATFORM.owner) {
      // A version that is there and cannot be used was deleted, or has failed its verification.
      const isKnown = (await this.#catalog.rows.find(versionKey(name, own))) !== null;
      return !isKnown && this.#builtIns.publish(name, version, caller);
    }
    if ((await this.#catalog.versions(name, caller)).length > 0) this.#builtIns.assertNotNewer(name, version);
    return false;
  }

  /** Everybody may see it. */
  async #publishBuiltIn({ config, digest, bytes }: BuiltInBundle): Promise<void> {
    await this.transfers.upload(digest, Readable.from([bytes]), PLATFORM);
    await this.publish({ ...config, visibility: "public", artifacts: [{ type: "bundle", content: digest }] }, PLATFORM);
  }

  /** A version that the caller may see and change. */
  async #getWritable(name: string, version: string, caller: Caller): Promise<VersionRow> {
    const row = await this.#catalog.get(name, version, caller);
    assertPublisher(caller);
    assertNameAllowed(name, row.owner, caller);
    return row;
  }

  async #change({ name, version }: VersionRow, change: VersionChange, caller: Caller): Promise<EnvironmentVersion> {
    const { now } = this.#options;
    return this.#catalog.load(await this.#catalog.change(name, version, caller, (row) => applyChange(row, change, caller.owner, now())));
  }
}
