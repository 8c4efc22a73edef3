import { isPlatformError, messageOf, PlatformError, type Variables, type Visibility } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import type { BlobStore } from "../archives/blobs.ts";
import { contentKey } from "../archives/ownership.ts";
import type { Bundles } from "../bundles/bundles.ts";
import type { VersionCatalog } from "../versions/catalog.ts";
import {
  type Content,
  type EnvironmentVersion,
  environmentOf,
  type Metadata,
  type VersionEvent,
  type VersionRow,
  versionKey,
  withEvent,
} from "../versions/environment-version.ts";
import { assertNameAllowed, assertPublisher } from "../versions/rights.ts";
import { applyChange } from "../versions/version-change.ts";
import { type ChildResolver, type ResolvedChild, resolveChildren, withReexported } from "./children.ts";
import { ownVariables } from "./own-variables.ts";
import { contentBytesOf, contentDigestOf, type Publication, parsePublication } from "./publication.ts";
import type { Transfers } from "./transfers.ts";

export interface InspectOptions {
  /** The owner whose quota it counts against. */
  readonly owner: string;
  /** The variables of every instance of the environment. */
  readonly variables: Variables;
  /** What is published. */
  readonly publication: Publication;
  /** Aborted when the caller no longer waits. */
  readonly signal?: AbortSignal | undefined;
}

/** Starts the bundle in a folder and reads what it offers. */
export type Inspect = (folder: string, options: InspectOptions) => Promise<Metadata>;

export interface PublisherOptions extends ChildResolver {
  readonly catalog: VersionCatalog;
  readonly transfers: Transfers;
  readonly blobs: BlobStore;
  readonly bundles: Bundles;
  /** Rejects with the reason if the bundle does not start. */
  readonly inspect: Inspect;
  readonly maxWarm: number | undefined;
  readonly now: () => Date;
  /** The default visibility of a name's first version. Later versions inherit that of the previous one. */
  readonly visibility: Visibility;
}

export interface Published {
  readonly environment: EnvironmentVersion;
  /** False if identical content was published before. */
  readonly isNew: boolean;
}

/** Publishes new versions. All checks come before the first write, so a refused publication leaves nothing behind. */
export class Publisher {
  readonly #options: PublisherOptions;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  async publish(upsert: unknown, caller: Caller, verify: boolean, signal?: AbortSignal): Promise<Published> {
    assertPublisher(caller);
    const { catalog, transfers } = this.#options;
    const publication = parsePublication(upsert);
    assertWarmAllowed(publication, this.#options.maxWarm);
    const { name, version } = publication;
    const owner = await catalog.ownerOf(name);
    assertNameAllowed(name, owner, caller);
    const known = (await catalog.rows.find(versionKey(name, version)))?.value ?? null;
    const isThere = known !== null && !known.isRemoved;
    const source = (await transfers.takeSource(name, version, caller)) ?? (isThere ? known.sourceDigest : null);
    const digest = contentDigestOf(publication, source);
    if (isThere) return this.#republish(known, digest, publication, caller, verify, signal);
    if (known !== null) assertReplaceable(known, digest);

    await this.#assertUploaded(publication, source, caller);
    for (const dependency of publication.dependencies) await this.#assertDependency(dependency, caller);
    const children = await resolveChildren(publication, caller, this.#options);
    const metadata = withReexported(await this.#inspect(publication, verify, caller, signal), children);

    const content = this.#contentOf(publication, source, metadata);
    const fresh = await this.#rowOf(publication, digest, content, children, caller);
    const { row, isNew } = await this.#countingContent(publication, digest, caller, async () => {
      await catalog.saveContent(digest, content);
      return catalog.insert(fresh, (removed) => {
        assertReplaceable(removed, digest);
        return { ...fresh, history: [...removed.history, ...fresh.history] };
      });
    });
    if (!isNew) return this.#republish(row, digest, publication, caller, false);
    // Again: until a row referred to the content, a sweep could delete it.
    await catalog.saveContent(digest, content);
    return { environment: environmentOf(row, content), isNew };
  }

  /** Counts the content against the publisher's quota, unless a concurrent publication was first. */
  async #countingContent<T extends { row: VersionRow }>(
    publication: Publication,
    digest: string,
    caller: Caller,
    insert: () => Promise<T>,
  ): Promise<T> {
    const { blobs, now } = this.#options;
    const key = contentKey(digest);
    const isNew = await blobs.ownership.add(caller.owner, key, contentBytesOf(publication), now());
    const release = async () => {
      if (isNew) await blobs.ownership.release(caller.owner, key);
    };
    try {
      const inserted = await insert();
      if (inserted.row.contentDigest !== digest || inserted.row.publisher !== caller.owner) await release();
      return inserted;
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** Publishes identical content again: verifies it if that was skipped before, and applies a change of visibility. */
  async #republish(
    row: VersionRow,
    digest: string,
    publication: Publication,
    caller: Caller,
    verify: boolean,
    signal?: AbortSignal,
  ): Promise<Published> {
    if (row.contentDigest !== digest) throw versionExists(row);
    const { catalog, now } = this.#options;
    const content = await catalog.content(digest);
    if (verify && content.metadata === null && content.bundleDigest !== null) {
      const children = await Promise.all((row.children ?? []).map(async (pin) => ({ pin, environment: await this.#options.pinned(pin) })));
      const metadata = withReexported(await this.#inspect(publication, true, caller, signal), children);
      await catalog.saveContent(digest, { ...content, metadata });
      await catalog.change(row.name, row.version, caller, (current) =>
        withEvent(current, this.#event("verified", caller), current.status === "Init" ? { status: "Verified" } : {}),
      );
    }
    const change = { ...publication, status: null };
    const next = await catalog.change(row.name, row.version, caller, (current) => applyChange(current, change, caller.owner, now()));
    return { environment: await catalog.load(next), isNew: false };
  }

  async #assertUploaded({ bundleDigest }: Publication, source: string | null, caller: Caller): Promise<void> {
    const { transfers, blobs } = this.#options;
    const isBundleHere = bundleDigest === null || (await transfers.has(bundleDigest, caller));
    for (const digest of [bundleDigest, source]) {
      if (digest === null || (isBundleHere && (await blobs.keep(digest)))) continue;
      const message = `'${caller.owner}' has not uploaded the bundle ${digest}; upload it first, then publish`;
      throw new PlatformError("bundle.not_found", message, { details: { digest } });
    }
  }

  async #assertDependency(ref: string, caller: Caller): Promise<void> {
    await this.#options.resolve(ref, caller).catch((cause: unknown) => {
      throw new PlatformError("environment.invalid", `dependencies names '${ref}', which cannot be resolved: ${messageOf(cause)}`, {
        cause,
      });
    });
  }

  /** Unpacks the bundle, which checks it, and starts it if `isWanted`. */
  async #inspect(publication: Publication, isWanted: boolean, { owner }: Caller, signal?: AbortSignal): Promise<Metadata | null> {
    const { name, version, bundleDigest } = publication;
    if (bundleDigest === null) return null;
    const { folder, manifest } = await this.#options.bundles.open(bundleDigest);
    if (manifest.name !== name || manifest.version !== version) {
      const message = `the bundle contains ${manifest.name}@${manifest.version}, not ${name}@${version}; build it again`;
      throw new PlatformError("environment.invalid", message);
    }
    if (manifest.main === undefined && publication.config.runtime === undefined)
      throw new PlatformError(
        "environment.invalid",
        `the bundle of ${name}@${version} has no code to load, and config.json no runtime.command`,
      );
    if (!isWanted) return null;
    try {
      return await this.#options.inspect(folder, { owner, variables: ownVariables(publication), publication, signal });
    } catch (cause) {
      const message = `${name}@${version} was not published because it could not be started: ${messageOf(cause)}`;
      if (signal?.aborted) throw signal.reason;
      // A refusal by the platform, such as 429, is not the environment's fault and is passed on with its Retry-After.
      if (isPlatformError(cause) && cause.retryable) throw new PlatformError(cause.code, message, { cause, details: cause.details });
      throw new PlatformError("environment.invalid", message, { cause });
    }
  }

  #contentOf(publication: Publication, sourceDigest: string | null, metadata: Metadata | null): Content {
    const { name, version, config, artifacts, dependencies, bundleDigest } = publication;
    const createdAt = this.#options.now().toISOString();
    return { name, version, config, artifacts, dependencies, bundleDigest, sourceDigest, metadata, createdAt };
  }

  async #rowOf(
    publication: Publication,
    contentDigest: string,
    content: Content,
    children: readonly ResolvedChild[],
    caller: Caller,
  ): Promise<VersionRow> {
    const { catalog, now } = this.#options;
    const { name, version, config } = publication;
    const { bundleDigest, sourceDigest, metadata, createdAt } = content;
    const status = publication.status ?? (metadata === null ? "Init" : "Verified");
    const history = [this.#event("published", caller, contentDigest)];
    if (metadata !== null) history.push(this.#event("verified", caller));
    if (status === "Released") history.push(this.#event("released", caller, status));
    return {
      name,
      version,
      owner: await catalog.claim(name, caller, now()),
      publisher: caller.owner,
      description: config.description ?? "",
      tags: config.tags ?? [],
      status,
      ...(await this.#visibilityOf(publication)),
      contentDigest,
      bundleDigest,
      sourceDigest,
      ...(children.length > 0 && { children: children.map(({ pin }) => pin) }),
      createdAt,
      updatedAt: createdAt,
      history,
      isRemoved: false,
    };
  }

  async #visibilityOf({ name, visibility, sharedWith }: Publication): Promise<Pick<VersionRow, "visibility" | "sharedWith">> {
    if (visibility !== null) return { visibility, sharedWith: sharedWith ?? [] };
    let last: VersionRow | null = null;
    for (const { value } of await this.#options.catalog.rowsOf(name)) {
      if (last === null || value.createdAt > last.createdAt) last = value;
    }
    return { visibility: last?.visibility ?? this.#options.visibility, sharedWith: sharedWith ?? last?.sharedWith ?? [] };
  }

  #event(what: VersionEvent["what"], caller: Caller, detail?: string): VersionEvent {
    return { at: this.#options.now().toISOString(), by: caller.owner, what, ...(detail !== undefined && { detail }) };
  }
}

function assertWarmAllowed({ config }: Publication, max = Number.POSITIVE_INFINITY): void {
  const warm = config.deployConfig?.warm ?? 0;
  if (warm <= max) return;
  const message = `deployConfig.warm is ${warm}; this server keeps at most ${max} processes of one environment ready (poolMax, poolPerOwner, poolTotal): lower it, or request a higher limit`;
  throw new PlatformError("environment.invalid", message, { details: { field: "deployConfig.warm", limit: max } });
}

/** A released version number is never reused for other content, even after it was deleted. */
function assertReplaceable(removed: VersionRow, digest: string): void {
  if (removed.status === "Released" && removed.contentDigest !== digest) throw versionExists(removed, "was released and deleted");
}

export function versionExists({ name, version, contentDigest }: VersionRow, what = "is already published"): PlatformError {
  const rule = "A published version does not change: raise the version in config.json and publish again";
  const message = `Environment with same name and version already exists: ${name}@${version} ${what} with other content. ${rule}`;
  return new PlatformError("environment.exists", message, { details: { name, version, contentDigest } });
}
