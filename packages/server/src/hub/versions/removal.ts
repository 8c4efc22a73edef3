import { PlatformError } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import type { Versioned } from "../../stores/store.ts";
import { contentKey, type Holdings } from "../archives/ownership.ts";
import { notFound, type Shelf } from "./catalog.ts";
import { happened, type VersionRow, versionKey } from "./environment-version.ts";
import { demandName, demandPublisher, isAdmin, maySee } from "./rights.ts";

export interface RemovalOptions {
  readonly shelf: Shelf;
  readonly holdings: Holdings;
  readonly isInUse: (name: string, version: string) => Promise<boolean>;
  readonly now: () => Date;
}

/** Takes versions away, by the rules. */
export class Removal {
  readonly #options: RemovalOptions;

  constructor(options: RemovalOptions) {
    this.#options = options;
  }

  /** One version, or with null all of a name's or none; answers which. */
  async remove(name: string, version: string | null, caller: Caller): Promise<string[]> {
    const { shelf } = this.#options;
    const all = await shelf.standing(name);
    const rows = all.filter(({ value }) => (version === null || value.version === version) && maySee(value, caller));
    const [first] = rows;
    if (first === undefined) {
      const others = all.map(({ value }) => value).filter((row) => maySee(row, caller));
      throw notFound(version === null ? name : versionKey(name, version), others);
    }
    demandPublisher(caller);
    demandName(name, first.value.owner, caller);
    for (const { value } of rows) await this.#demandRemovable(value, caller);
    await this.#markAll(rows, caller);
    for (const { value } of rows) await this.#giveBack(value);
    return rows.map(({ value }) => value.version);
  }

  async #demandRemovable({ name, version, status }: VersionRow, caller: Caller): Promise<void> {
    if (status === "Released" && !isAdmin(caller)) {
      throw new PlatformError("environment.released", `${name}@${version} is released; only an administrator may take it away`);
    }
    if (await this.#options.isInUse(name, version)) {
      throw new PlatformError("environment.in_use", `instances of ${name}@${version} still run; end them first, then delete it`, {
        details: { name, version },
      });
    }
  }

  /** Marks each row as it was when the rules were checked. If one has changed since, those marked before are put back. */
  async #markAll(rows: readonly Versioned<VersionRow>[], caller: Caller): Promise<void> {
    const { shelf, now } = this.#options;
    const marked: Versioned<VersionRow>[] = [];
    for (const row of rows) {
      const event = { at: now().toISOString(), by: caller.owner, what: "removed" } as const;
      if (await shelf.rows.swap(row, happened(row.value, event, { isRemoved: true }))) {
        marked.push(row);
        continue;
      }
      for (const { key, value } of marked) await shelf.rows.update(key, (current) => (current.isRemoved ? value : null));
      const { name, version } = row.value;
      throw new PlatformError("request.conflict", `${name}@${version} changed while it was being deleted, so nothing was; try again`, {
        retryable: true,
      });
    }
  }

  /** The publisher stops paying for archives that none of their versions needs any more. */
  async #giveBack({ publisher, contentDigest, bundleDigest, sourceDigest }: VersionRow): Promise<void> {
    const { holdings } = this.#options;
    await holdings.release(publisher, contentKey(contentDigest));
    for (const [index, value] of Object.entries({ bundle: bundleDigest, source: sourceDigest })) {
      if (value === null) continue;
      if (!(await this.#isNeeded(index, value, publisher))) await holdings.release(publisher, value);
    }
  }

  async #isNeeded(index: string, value: string, publisher: string): Promise<boolean> {
    for await (const row of this.#options.shelf.rows.each({ index, value })) if (row.value.publisher === publisher) return true;
    return false;
  }
}
