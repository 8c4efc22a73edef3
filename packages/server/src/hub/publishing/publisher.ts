import { isPlatformError, messageOf, PlatformError, type Variables, type Visibility } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import type { BlobStore } from "../archives/blobs.ts";
import { contentKey } from "../archives/ownership.ts";
import type { Bundles } from "../bundles/bundles.ts";
import type { Shelf } from "../versions/catalog.ts";
import {
  type Content,
  type EnvironmentVersion,
  happened,
  type Metadata,
  type VersionEvent,
  type VersionRow,
  versionKey,
  wholeOf,
} from "../versions/environment-version.ts";
import { demandName, demandPublisher } from "../versions/rights.ts";
import { altered } from "../versions/version-change.ts";
import { ownVariables } from "./own-variables.ts";
import { contentBytesOf, contentDigestOf, type Publication, parsePublication } from "./publication.ts";
import type { Transfers } from "./transfers.ts";

export interface InspectOptions {
  /** Against whom it counts. */
  readonly owner: string;
  /** What every instance of the environment has. */
  readonly variables: Variables;
  /** Fires when nobody waits for it any more. */
  readonly signal?: AbortSignal | undefined;
}

/** Starts the bundle in a folder and finds out what it offers. */
export type Inspect = (folder: string, options: InspectOptions) => Promise<Metadata>;

export interface PublisherOptions {
  readonly shelf: Shelf;
  readonly transfers: Transfers;
  readonly blobs: BlobStore;
  readonly bundles: Bundles;
  /** Starts the bundle in a folder and finds out what it offers; rejects with the reason if it does not start. */
  readonly inspect: Inspect;
  readonly maxWarm: number | undefined;
  /** Rejects if the caller cannot have this dependency. */
  readonly resolve: (ref: string, caller: Caller) => Promise<unknown>;
  readonly now: () => Date;
  /** Of a name's first version, if its publisher does not say. Later ones are seen by whoever sees the last. */
  readonly visibility: Visibility;
}

export interface Published {
  readonly environment: EnvironmentVersion;
  /** False if the same was published before. */
  readonly isNew: boolean;
}

/** Puts new versions on the shelf. Everything is checked before the first row is written, so that a refusal leaves nothing. */
export class Publisher {
  readonly #options: PublisherOptions;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  async publish(upsert: unknown, caller: Caller, verify: boolean, signal?: AbortSignal): Promise<Published> {
    demandPublisher(caller);
    const { shelf, transfers } = this.#options;
    const publication = parsePublication(upsert);
    demandWarm(publication, this.#options.maxWarm);
    const { name, version } = publication;
    const owner = await shelf.ownerOf(name);
    demandName(name, owner, caller);
    const known = (await shelf.rows.find(versionKey(name, version)))?.value ?? null;
    const isThere = known !== null && !known.isRemoved;
    const source = (await transfers.take(name, version, caller)) ?? (isThere ? known.sourceDigest : null);
    const digest = contentDigestOf(publication, source);
    if (isThere) return this.#again(known, digest, publication, caller, verify, signal);
    if (known !== null) demandReplaceable(known, digest);

    await this.#demandArchives(publication, source, caller);
    for (const dependency of publication.dependencies) await this.#demandDependency(dependency, caller);
    const metadata = await this.#inspect(publication, verify, caller, signal);

    const content = this.#contentOf(publication, source, metadata);
    const fresh = await this.#rowOf(publication, digest, content, caller);
    const { row, isNew } = await this.#holding(publication, digest, caller, async () => {
      await shelf.keep(digest, content);
      return shelf.place(fresh, (removed) => {
        demandReplaceable(removed, digest);
        return { ...fresh, history: [...removed.history, ...fresh.history] };
      });
    });
    if (!isNew) return this.#again(row, digest, publication, caller, false);
    // Once more: until a row referred to it, a sweep could take it away.
    await shelf.keep(digest, content);
    return { environment: wholeOf(row, content), isNew };
  }

  /** Counts the content against the publisher's quota, unless another publication was faster. */
  async #holding<T extends { row: VersionRow }>(
    publication: Publication,
    digest: string,
    caller: Caller,
    place: () => Promise<T>,
  ): Promise<T> {
    const { blobs, now } = this.#options;
    const key = contentKey(digest);
    const isNew = await blobs.holdings.hold(caller.owner, key, contentBytesOf(publication), now());
    const giveBack = async () => {
      if (isNew) await blobs.holdings.release(caller.owner, key);
    };
    try {
      const placed = await place();
      if (placed.row.contentDigest !== digest || placed.row.publisher !== caller.owner) await giveBack();
      return placed;
    } catch (error) {
      await giveBack();
      throw error;
    }
  }

  /** The same again: what was not verified then is verified now, and a wish who may see it is granted. */
  async #again(
    row: VersionRow,
    digest: string,
    publication: Publication,
    caller: Caller,
    verify: boolean,
    signal?: AbortSignal,
  ): Promise<Published> {
    if (row.contentDigest !== digest) throw taken(row);
    const { shelf, now } = this.#options;
    const content = await shelf.content(digest);
    if (verify && content.metadata === null && content.bundleDigest !== null) {
      await shelf.keep(digest, { ...content, metadata: await this.#inspect(publication, true, caller, signal) });
      await shelf.change(row.name, row.version, caller, (current) =>
        happened(current, this.#event("verified", caller), current.status === "Init" ? { status: "Verified" } : {}),
      );
    }
    const wish = { ...publication, status: null };
    const next = await shelf.change(row.name, row.version, caller, (current) => altered(current, wish, caller.owner, now()));
    return { environment: await shelf.whole(next), isNew: false };
  }

  async #demandArchives({ bundleDigest }: Publication, source: string | null, caller: Caller): Promise<void> {
    const { transfers, blobs } = this.#options;
    const isBundleHere = bundleDigest === null || (await transfers.has(bundleDigest, caller));
    for (const digest of [bundleDigest, source]) {
      if (digest === null || (isBundleHere && (await blobs.keep(digest)))) continue;
      const message = `'${caller.owner}' has not uploaded the bundle ${digest}; upload it first, then publish`;
      throw new PlatformError("bundle.not_found", message, { details: { digest } });
    }
  }

  async #demandDependency(ref: string, caller: Caller): Promise<void> {
    await this.#options.resolve(ref, caller).catch((cause: unknown) => {
      throw new PlatformError("environment.invalid", `dependencies names '${ref}', which cannot be had: ${messageOf(cause)}`, { cause });
    });
  }

  /** Unpacks the bundle, for that alone finds what is unsafe or not what it says, and starts it if wanted. */
  async #inspect(publication: Publication, isWanted: boolean, { owner }: Caller, signal?: AbortSignal): Promise<Metadata | null> {
    const { name, version, bundleDigest } = publication;
    if (bundleDigest === null) return null;
    const { folder, manifest } = await this.#options.bundles.open(bundleDigest);
    if (manifest.name !== name || manifest.version !== version) {
      const message = `the bundle is of ${manifest.name}@${manifest.version}, not of ${name}@${version}; build it again`;
      throw new PlatformError("environment.invalid", message);
    }
    if (!isWanted) return null;
    try {
      return await this.#options.inspect(folder, { owner, variables: ownVariables(publication), signal });
    } catch (cause) {
      const message = `${name}@${version} is not published, for it could not be started: ${messageOf(cause)}`;
      if (signal?.aborted) throw signal.reason;
      // What the platform has refused, such as with 429, is no fault of the environment's, and says when to try again.
      if (isPlatformError(cause) && cause.retryable) throw new PlatformError(cause.code, message, { cause, details: cause.details });
      throw new PlatformError("environment.invalid", message, { cause });
    }
  }

  #contentOf(publication: Publication, sourceDigest: string | null, metadata: Metadata | null): Content {
    const { name, version, config, artifacts, dependencies, bundleDigest } = publication;
    const createdAt = this.#options.now().toISOString();
    return { name, version, config, artifacts, dependencies, bundleDigest, sourceDigest, metadata, createdAt };
  }

  async #rowOf(publication: Publication, contentDigest: string, content: Content, caller: Caller): Promise<VersionRow> {
    const { shelf, now } = this.#options;
    const { name, version, config } = publication;
    const { bundleDigest, sourceDigest, metadata, createdAt } = content;
    const status = publication.status ?? (metadata === null ? "Init" : "Verified");
    const history = [this.#event("published", caller, contentDigest)];
    if (metadata !== null) history.push(this.#event("verified", caller));
    if (status === "Released") history.push(this.#event("released", caller, status));
    return {
      name,
      version,
      owner: await shelf.claim(name, caller, now()),
      publisher: caller.owner,
      description: config.description ?? "",
      tags: config.tags ?? [],
      status,
      ...(await this.#visibilityOf(publication)),
      contentDigest,
      bundleDigest,
      sourceDigest,
      createdAt,
      updatedAt: createdAt,
      history,
      isRemoved: false,
    };
  }

  async #visibilityOf({ name, visibility, sharedWith }: Publication): Promise<Pick<VersionRow, "visibility" | "sharedWith">> {
    if (visibility !== null) return { visibility, sharedWith: sharedWith ?? [] };
    let last: VersionRow | null = null;
    for (const { value } of await this.#options.shelf.standing(name)) {
      if (last === null || value.createdAt > last.createdAt) last = value;
    }
    return { visibility: last?.visibility ?? this.#options.visibility, sharedWith: sharedWith ?? last?.sharedWith ?? [] };
  }

  #event(what: VersionEvent["what"], caller: Caller, detail?: string): VersionEvent {
    return { at: this.#options.now().toISOString(), by: caller.owner, what, ...(detail !== undefined && { detail }) };
  }
}

function demandWarm({ config }: Publication, max = Number.POSITIVE_INFINITY): void {
  const warm = config.deployConfig?.warm ?? 0;
  if (warm <= max) return;
  const message = `deployConfig.warm is ${warm}; this server keeps at most ${max} processes of one environment ready (poolMax, poolPerOwner, poolTotal): lower it, or ask for a higher limit`;
  throw new PlatformError("environment.invalid", message, { details: { field: "deployConfig.warm", limit: max } });
}

/** A released version's number stays its own, even after it was taken away. */
function demandReplaceable(removed: VersionRow, digest: string): void {
  if (removed.status === "Released" && removed.contentDigest !== digest) throw taken(removed, "was released and taken away");
}

export function taken({ name, version, contentDigest }: VersionRow, what = "is published already"): PlatformError {
  const rule = "A published version does not change: raise the version in config.json and publish again";
  const message = `Environment with same name and version already exists: ${name}@${version} ${what} with other content. ${rule}`;
  return new PlatformError("environment.exists", message, { details: { name, version, contentDigest } });
}
