import type { Readable } from "node:stream";
import { PlatformError, parseName } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import { Collection } from "../../stores/collection.ts";
import type { Store } from "../../stores/store.ts";
import type { Blob, BlobStore } from "../archives/blobs.ts";
import { parseDigest } from "../archives/digest.ts";
import type { Bytes } from "../archives/gunzip.ts";
import { notFound, type VersionCatalog } from "../versions/catalog.ts";
import { type VersionRow, versionKey } from "../versions/environment-version.ts";
import { assertNameAllowed, assertPublisher, isAdmin } from "../versions/rights.ts";
import { parseVersion } from "./publication.ts";
import { type Ticket, Tickets } from "./tickets.ts";

/** A project's uploaded files, pending until their version is published. */
interface PendingSourceRow {
  readonly digest: string;
  readonly at: string;
}

export interface Download {
  readonly blob: Blob;
  readonly fileName: string;
  readonly stream: Readable;
}

export interface TransfersOptions {
  readonly store: Store;
  readonly catalog: VersionCatalog;
  readonly blobs: BlobStore;
  readonly now: () => Date;
}

const PENDING_LIFE_MS = 24 * 3_600_000;

/** Uploads and downloads of archives. */
export class Transfers {
  readonly #catalog: VersionCatalog;
  readonly #blobs: BlobStore;
  readonly #tickets: Tickets;
  readonly #pendingSources: Collection<PendingSourceRow>;
  readonly #now: () => Date;

  constructor({ store, catalog, blobs, now }: TransfersOptions) {
    this.#catalog = catalog;
    this.#blobs = blobs;
    this.#tickets = new Tickets(store, now);
    this.#pendingSources = new Collection<PendingSourceRow>(store, "environment-arrival", () => ({}));
    this.#now = now;
  }

  /** Whether the caller has uploaded this bundle and may publish it. */
  async has(digest: string, caller: Caller): Promise<boolean> {
    const isTheirs = isAdmin(caller) || (await this.#blobs.ownership.has(caller.owner, parseDigest(digest)));
    return isTheirs && (await this.#blobs.find(digest)) !== null;
  }

  /** Stores a bundle to be published, under the digest that `aenv build` computed. */
  async upload(digest: string, source: Bytes, caller: Caller, signal?: AbortSignal): Promise<Blob> {
    assertPublisher(caller);
    return this.#blobs.put(source, { owner: caller.owner, digest: parseDigest(digest), ...(signal !== undefined && { signal }) });
  }

  /** The archive of a version: the bundle, or the project's files if the original's client uploaded those. */
  async download(name: string, version: string, caller: Caller): Promise<Download> {
    const row = await this.#catalog.get(name, version, caller);
    return this.#open(row, row.bundleDigest ?? row.sourceDigest);
  }

  /** A one-time link that needs no token, for the original's client. */
  async sign(name: string, version: string, direction: "upload" | "download", caller: Caller): Promise<Ticket> {
    if (direction === "download") await this.#catalog.get(name, version, caller);
    else {
      assertPublisher(caller);
      parseName(name);
      parseVersion(version);
      const owner = await this.#catalog.ownerOf(name);
      assertNameAllowed(name, owner, caller);
    }
    return this.#tickets.issue({ direction, name, version, owner: caller.owner });
  }

  /** Receives a project's files through such a link. They become part of the version when its owner publishes it. */
  async receive(ticket: string, source: Bytes, signal?: AbortSignal): Promise<Blob> {
    const { name, version, owner } = await this.#tickets.redeem(ticket, "upload");
    const blob = await this.#blobs.put(source, { owner, ...(signal !== undefined && { signal }) });
    const key = pendingKey(name, version, owner);
    const row = { digest: blob.digest, at: this.#now().toISOString() };
    while ((await this.#pendingSources.insert(key, row)) !== "inserted") await this.#pendingSources.remove(key);
    return blob;
  }

  /** Sends an archive through such a link: the project's files, or the bundle if there are none. */
  async send(ticket: string): Promise<Download> {
    const { name, version } = await this.#tickets.redeem(ticket, "download");
    const row = await this.#catalog.rows.find(versionKey(name, version));
    if (row === null || row.value.isRemoved) throw notFound(versionKey(name, version), []);
    return this.#open(row.value, row.value.sourceDigest ?? row.value.bundleDigest);
  }

  /** The digest of the files uploaded for a version, removed from the pending ones; null if there are none. */
  async takeSource(name: string, version: string, caller: Caller): Promise<string | null> {
    const row = await this.#pendingSources.find(pendingKey(name, version, caller.owner));
    return row !== null && (await this.#pendingSources.remove(row.key, row.rev)) ? row.value.digest : null;
  }

  /** Deletes expired links and pending uploads; returns the digests that may still be published. */
  async collect(): Promise<Set<string>> {
    await this.#tickets.collect();
    const pending = new Set<string>();
    const oldest = new Date(this.#now().getTime() - PENDING_LIFE_MS).toISOString();
    for await (const { key, rev, value } of this.#pendingSources.each()) {
      if (value.at > oldest) pending.add(value.digest);
      else await this.#pendingSources.remove(key, rev);
    }
    return pending;
  }

  async #open({ name, version }: VersionRow, digest: string | null): Promise<Download> {
    if (digest === null) {
      throw new PlatformError("bundle.not_found", `${name}@${version} has no archive: it was published as an image or as a config only`);
    }
    return { ...(await this.#blobs.open(digest)), fileName: `${name}-${version}.tar.gz` };
  }
}

function pendingKey(name: string, version: string, owner: string): string {
  return `${versionKey(name, version)} ${owner}`;
}
