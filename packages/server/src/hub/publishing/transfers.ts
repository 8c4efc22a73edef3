import type { Readable } from "node:stream";
import { PlatformError, parseName } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import { Collection } from "../../stores/collection.ts";
import type { Store } from "../../stores/store.ts";
import type { Blob, BlobStore } from "../archives/blobs.ts";
import { parseDigest } from "../archives/digest.ts";
import type { Bytes } from "../archives/gunzip.ts";
import { notFound, type Shelf } from "../versions/catalog.ts";
import { type VersionRow, versionKey } from "../versions/environment-version.ts";
import { demandName, demandPublisher, isAdmin } from "../versions/rights.ts";
import { parseVersion } from "./publication.ts";
import { type Ticket, Tickets } from "./tickets.ts";

/** A project's files that have arrived and wait for their version to be published. */
interface ArrivalRow {
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
  readonly shelf: Shelf;
  readonly blobs: BlobStore;
  readonly now: () => Date;
}

const ARRIVAL_LIFE_MS = 24 * 3_600_000;

/** Archives on their way in and out of the hub. */
export class Transfers {
  readonly #shelf: Shelf;
  readonly #blobs: BlobStore;
  readonly #tickets: Tickets;
  readonly #arrivals: Collection<ArrivalRow>;
  readonly #now: () => Date;

  constructor({ store, shelf, blobs, now }: TransfersOptions) {
    this.#shelf = shelf;
    this.#blobs = blobs;
    this.#tickets = new Tickets(store, now);
    this.#arrivals = new Collection<ArrivalRow>(store, "environment-arrival", () => ({}));
    this.#now = now;
  }

  /** Whether the caller has uploaded this bundle and may publish it. */
  async has(digest: string, caller: Caller): Promise<boolean> {
    const isTheirs = isAdmin(caller) || (await this.#blobs.holdings.has(caller.owner, parseDigest(digest)));
    return isTheirs && (await this.#blobs.find(digest)) !== null;
  }

  /** A bundle to publish afterwards, under the digest that `aenv build` has given it. */
  async upload(digest: string, source: Bytes, caller: Caller, signal?: AbortSignal): Promise<Blob> {
    demandPublisher(caller);
    return this.#blobs.put(source, { owner: caller.owner, digest: parseDigest(digest), ...(signal !== undefined && { signal }) });
  }

  /** The archive of a version: the bundle, or the project's files where the original's client has sent those. */
  async download(name: string, version: string, caller: Caller): Promise<Download> {
    const row = await this.#shelf.get(name, version, caller);
    return this.#open(row, row.bundleDigest ?? row.sourceDigest);
  }

  /** A link that works once and without a token, for the original's client. */
  async sign(name: string, version: string, direction: "upload" | "download", caller: Caller): Promise<Ticket> {
    if (direction === "download") await this.#shelf.get(name, version, caller);
    else {
      demandPublisher(caller);
      parseName(name);
      parseVersion(version);
      const owner = await this.#shelf.ownerOf(name);
      demandName(name, owner, caller);
    }
    return this.#tickets.issue({ direction, name, version, owner: caller.owner });
  }

  /** Takes a project's files by such a link. They become part of the version that the same owner publishes next. */
  async receive(ticket: string, source: Bytes, signal?: AbortSignal): Promise<Blob> {
    const { name, version, owner } = await this.#tickets.redeem(ticket, "upload");
    const blob = await this.#blobs.put(source, { owner, ...(signal !== undefined && { signal }) });
    const key = arrivalKey(name, version, owner);
    const row = { digest: blob.digest, at: this.#now().toISOString() };
    while ((await this.#arrivals.insert(key, row)) !== "inserted") await this.#arrivals.remove(key);
    return blob;
  }

  /** Gives an archive by such a link: the project's files, or the bundle if there are none. */
  async send(ticket: string): Promise<Download> {
    const { name, version } = await this.#tickets.redeem(ticket, "download");
    const row = await this.#shelf.rows.find(versionKey(name, version));
    if (row === null || row.value.isRemoved) throw notFound(versionKey(name, version), []);
    return this.#open(row.value, row.value.sourceDigest ?? row.value.bundleDigest);
  }

  /** What has arrived for a version; whoever takes it decides what becomes of it. */
  async take(name: string, version: string, caller: Caller): Promise<string | null> {
    const row = await this.#arrivals.find(arrivalKey(name, version, caller.owner));
    return row !== null && (await this.#arrivals.remove(row.key, row.rev)) ? row.value.digest : null;
  }

  /** Forgets links and arrivals that are too old, and answers what may still be published. */
  async collect(): Promise<Set<string>> {
    await this.#tickets.collect();
    const waiting = new Set<string>();
    const oldest = new Date(this.#now().getTime() - ARRIVAL_LIFE_MS).toISOString();
    for await (const { key, rev, value } of this.#arrivals.each()) {
      if (value.at > oldest) waiting.add(value.digest);
      else await this.#arrivals.remove(key, rev);
    }
    return waiting;
  }

  async #open({ name, version }: VersionRow, digest: string | null): Promise<Download> {
    if (digest === null) {
      throw new PlatformError(
        "bundle.not_found",
        `${name}@${version} has no archive here: it was published as an image or by its config alone`,
      );
    }
    return { ...(await this.#blobs.open(digest)), fileName: `${name}-${version}.tar.gz` };
  }
}

function arrivalKey(name: string, version: string, owner: string): string {
  return `${versionKey(name, version)} ${owner}`;
}
