import { PlatformError } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import type { Versioned } from "../../stores/store.ts";
import { type BlobOwnership, contentKey } from "../archives/ownership.ts";
import { notFound, type VersionCatalog } from "./catalog.ts";
import { usedIndex, type VersionRow, versionKey, withEvent } from "./environment-version.ts";
import { assertNameAllowed, assertPublisher, isAdmin, maySee } from "./rights.ts";

export interface RemovalOptions {
  readonly catalog: VersionCatalog;
  readonly ownership: BlobOwnership;
  readonly isInUse: (name: string, version: string) => Promise<boolean>;
  readonly now: () => Date;
}

/** Deletes versions. A released one needs an administrator, and one with live instances cannot be deleted. */
export class Removal {
  readonly #options: RemovalOptions;

  constructor(options: RemovalOptions) {
    this.#options = options;
  }

  /** Deletes one version, or all of a name if `version` is null (all or none). Returns the deleted versions. */
  async remove(name: string, version: string | null, caller: Caller): Promise<string[]> {
    const { catalog } = this.#options;
    const all = await catalog.rowsOf(name);
    const rows = all.filter(({ value }) => (version === null || value.version === version) && maySee(value, caller));
    const [first] = rows;
    if (first === undefined) {
      const others = all.map(({ value }) => value).filter((row) => maySee(row, caller));
      throw notFound(version === null ? name : versionKey(name, version), others);
    }
    assertPublisher(caller);
    assertNameAllowed(name, first.value.owner, caller);
    for (const { value } of rows) await this.#assertRemovable(value, caller);
    await this.#markAll(rows, caller);
    for (const { value } of rows) await this.#releaseArchives(value);
    return rows.map(({ value }) => value.version);
  }

  async #assertRemovable({ name, version, status }: VersionRow, caller: Caller): Promise<void> {
    if (status === "Released" && !isAdmin(caller)) {
      throw new PlatformError("environment.released", `${name}@${version} is released; only an administrator may delete it`);
    }
    if (await this.#options.isInUse(name, version)) {
      throw new PlatformError("environment.in_use", `instances of ${name}@${version} are running; delete them first`, {
        details: { name, version },
      });
    }
    const [user] = await this.#options.catalog.rows.list({ where: { index: usedIndex(name, version), value: "yes" }, limit: 1 });
    if (user === undefined) return;
    throw new PlatformError("environment.in_use", `${user.key} uses ${name}@${version}; delete it first`, {
      details: { name, version, usedBy: user.key },
    });
  }

  /** Marks the rows as removed. If one has changed since the checks, the marks are rolled back. */
  async #markAll(rows: readonly Versioned<VersionRow>[], caller: Caller): Promise<void> {
    const { catalog, now } = this.#options;
    const marked: Versioned<VersionRow>[] = [];
    for (const row of rows) {
      const event = { at: now().toISOString(), by: caller.owner, what: "removed" } as const;
      if (await catalog.rows.swap(row, withEvent(row.value, event, { isRemoved: true }))) {
        marked.push(row);
        continue;
      }
      for (const { key, value } of marked) await catalog.rows.update(key, (current) => (current.isRemoved ? value : null));
      const { name, version } = row.value;
      throw new PlatformError(
        "request.conflict",
        `${name}@${version} changed while it was being deleted, so nothing was deleted; try again`,
        {
          retryable: true,
        },
      );
    }
  }

  /** Archives that none of the publisher's versions uses no longer count against the quota. */
  async #releaseArchives({ publisher, contentDigest, bundleDigest, sourceDigest }: VersionRow): Promise<void> {
    const { ownership } = this.#options;
    await ownership.release(publisher, contentKey(contentDigest));
    for (const [index, value] of Object.entries({ bundle: bundleDigest, source: sourceDigest })) {
      if (value === null) continue;
      if (!(await this.#isNeeded(index, value, publisher))) await ownership.release(publisher, value);
    }
  }

  async #isNeeded(index: string, value: string, publisher: string): Promise<boolean> {
    for await (const row of this.#options.catalog.rows.each({ index, value })) if (row.value.publisher === publisher) return true;
    return false;
  }
}
