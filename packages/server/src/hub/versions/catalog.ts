import { PlatformError } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import { Collection } from "../../stores/collection.ts";
import type { Store, Versioned } from "../../stores/store.ts";
import { type Content, type EnvironmentVersion, environmentOf, type VersionRow, versionKey } from "./environment-version.ts";
import { byNewest } from "./order.ts";
import { assertNameAllowed, maySee } from "./rights.ts";
import { VersionRows } from "./version-index.ts";

interface NameRow {
  readonly name: string;
  readonly owner: string;
  readonly createdAt: string;
}

const MAX_CACHED_CONTENTS = 500;
/** Longer than any publication takes from its content to its row. */
const CONTENT_GRACE_MS = 3_600_000;
/** How long the row of a removed version stays readable. */
const REMOVED_KEPT_MS = 30 * 24 * 3_600_000;

/** The stored versions: one short row per version, its content in a second row keyed by digest, and the owner of each name. */
export class VersionCatalog {
  readonly rows: VersionRows;
  readonly #contents: Collection<Content>;
  readonly #names: Collection<NameRow>;
  readonly #maxVersions: number;
  /** Content does not change once it has metadata, so it can be cached. */
  readonly #cache = new Map<string, Content>();

  constructor(store: Store, maxVersions: number) {
    this.#maxVersions = maxVersions;
    this.rows = new VersionRows(store);
    this.#contents = new Collection<Content>(store, "environment-content", () => ({}));
    this.#names = new Collection<NameRow>(store, "environment-name", () => ({}));
  }

  /** A version that the caller may see. */
  async get(name: string, version: string, caller: Caller): Promise<VersionRow> {
    const row = await this.rows.find(versionKey(name, version));
    if (row !== null && maySee(row.value, caller)) return row.value;
    throw notFound(versionKey(name, version), await this.versions(name, caller));
  }

  /** A name's versions that the caller may see, unordered. */
  async versions(name: string, caller: Caller): Promise<VersionRow[]> {
    return (await this.rowsOf(name)).map(({ value }) => value).filter((row) => maySee(row, caller));
  }

  /** All versions of a name that are not removed. */
  async rowsOf(name: string): Promise<Versioned<VersionRow>[]> {
    const rows: Versioned<VersionRow>[] = [];
    for await (const row of this.rows.each({ index: "name", value: name })) rows.push(row);
    return rows;
  }

  async load(row: VersionRow): Promise<EnvironmentVersion> {
    return environmentOf(row, await this.content(row.contentDigest));
  }

  async content(digest: string): Promise<Content> {
    const known = this.#cache.get(digest);
    if (known !== undefined) return known;
    const found = await this.#contents.find(digest);
    if (found === null) throw new PlatformError("internal", `the content ${digest} of a published version is missing from the store`);
    if (found.value.metadata !== null) this.#cacheContent(digest, found.value);
    return found.value;
  }

  /** Stores content before a row refers to it. Existing content stays, and gets the metadata if it had none. */
  async saveContent(digest: string, content: Content): Promise<void> {
    if ((await this.#contents.insert(digest, content)) !== "exists" || content.metadata === null) return;
    await this.#contents.update(digest, (known) => (known.metadata === null ? { ...known, metadata: content.metadata } : null));
  }

  /**
   * Inserts a version unless it exists. Of concurrent callers exactly one inserts; the others get the existing row. For a removed
   * version, `replaces` returns the row that replaces it, or throws if it may not be replaced.
   */
  async insert(fresh: VersionRow, replaces: (removed: VersionRow) => VersionRow): Promise<{ row: VersionRow; isNew: boolean }> {
    const key = versionKey(fresh.name, fresh.version);
    const limit = { index: "owner", value: fresh.owner, max: this.#maxVersions };
    for (;;) {
      const inserted = await this.rows.insert(key, fresh, { limit });
      if (inserted === "inserted") return { row: fresh, isNew: true };
      if (inserted === "limit") throw tooMany(limit.value, limit.max);
      const known = await this.rows.find(key);
      if (known === null) continue;
      if (!known.value.isRemoved) return { row: known.value, isNew: false };
      const row = replaces(known.value);
      if (await this.rows.swap(known, row)) return { row, isNew: true };
    }
  }

  /** Changes a version that the caller may see; `change` returns the same row to leave it unchanged. */
  async change(name: string, version: string, caller: Caller, change: (row: VersionRow) => VersionRow): Promise<VersionRow> {
    for (;;) {
      const found = await this.rows.find(versionKey(name, version));
      if (found === null || !maySee(found.value, caller)) throw notFound(versionKey(name, version), await this.versions(name, caller));
      const next = change(found.value);
      if (next === found.value || (await this.rows.swap(found, next))) return next;
    }
  }

  async ownerOf(name: string): Promise<string | null> {
    return (await this.#names.find(name))?.value.owner ?? null;
  }

  /** Makes the caller the owner of a name that has none; returns the owner. */
  async claim(name: string, caller: Caller, now: Date): Promise<string> {
    for (;;) {
      const owner = await this.ownerOf(name);
      if (owner !== null) {
        assertNameAllowed(name, owner, caller);
        return owner;
      }
      const row = { name, owner: caller.owner, createdAt: now.toISOString() };
      if ((await this.#names.insert(name, row)) === "inserted") return caller.owner;
    }
  }

  /**
   * Deletes the rows of versions that were removed long ago (never of a released one), and contents that no row refers to: those of
   * publications that lost a race, and of replaced versions.
   */
  async collect(now: Date): Promise<void> {
    const before = (ms: number) => new Date(now.getTime() - ms).toISOString();
    const [old, young] = [before(REMOVED_KEPT_MS), before(CONTENT_GRACE_MS)];
    for await (const { key, rev, value } of this.rows.each({ index: "removed", value: "yes" })) {
      if (value.updatedAt < old && value.status !== "Released") await this.rows.remove(key, rev);
    }
    for await (const { key, rev, value } of this.#contents.each()) {
      if (value.createdAt > young) continue;
      const row = await this.rows.find(versionKey(value.name, value.version));
      if (row?.value.contentDigest !== key) await this.#contents.remove(key, rev);
    }
  }

  #cacheContent(digest: string, content: Content): void {
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined && this.#cache.size >= MAX_CACHED_CONTENTS) this.#cache.delete(oldest);
    this.#cache.set(digest, content);
  }
}

function tooMany(owner: string, max: number): PlatformError {
  const message = `'${owner}' has published ${max} versions, which is the limit; delete old ones, or request a higher limit`;
  return new PlatformError("quota.exceeded", message, { retryable: false, details: { owner, maxVersions: max, retryAfterSeconds: 60 } });
}

/** Lists other versions that the caller may see. */
export function notFound(ref: string, others: readonly VersionRow[]): PlatformError {
  const versions = [...others]
    .sort(byNewest)
    .map((row) => row.version)
    .slice(0, 10);
  const hint = versions.length === 0 ? "" : `; available: ${versions.join(", ")}${others.length > 10 ? " and others" : ""}`;
  return new PlatformError("environment.not_found", `Environment not found: '${ref}'${hint}`, { details: { ref } });
}
