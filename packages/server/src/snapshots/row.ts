import type { ForkFidelity, Json } from "@aenv/contract";
import type { SnapshotPart } from "@aenv/sandbox";
import { Collection } from "../stores/collection.ts";
import type { Indexes, Store } from "../stores/store.ts";

/** A part of a snapshot, as it is stored. */
export interface StoredPart extends SnapshotPart {
  /** sha256 of its content before compression. */
  readonly digest: string;
  /** Its size on disk. */
  readonly bytes: number;
}

/**
 * A stored snapshot. The row is written before anything that it refers to, and a part is listed here before its file has its name. So
 * a file that no row lists is of no use.
 */
export interface SnapshotRow {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly fidelity: ForkFidelity;
  readonly environment: { readonly name: string; readonly version: string };
  /** Digest of the environment's bundle. */
  readonly bundle: string;
  /** The instance that it was taken of. */
  readonly instance: string;
  readonly task: string | null;
  readonly seed: number;
  readonly createdAt: string;
  /** The server that takes it. */
  readonly server: string;
  readonly parts: readonly StoredPart[];
  /** What the engine knows about it; null for a snapshot of the state. */
  readonly facts: Json;
  /** Connections that copies do not have. */
  readonly cut: readonly string[];
  /** Variables whose values are secrets that it may contain. */
  readonly secretVariables?: readonly string[];
  /** The arguments of the program whose snapshot it is, if it has any. */
  readonly programArguments?: readonly string[];
  /** The digest of the whole content; null until all of it is stored. */
  readonly digest: string | null;
}

export interface ReadySnapshot extends SnapshotRow {
  readonly digest: string;
}

export function isReady(row: SnapshotRow): row is ReadySnapshot {
  return row.digest !== null;
}

/** The key of a row is made of owner and name, so that a name is used once. Names have no slash. */
export function snapshotKey({ owner, name }: Pick<SnapshotRow, "owner" | "name">): string {
  return `${owner}/${name}`;
}

export function snapshotIndexes(row: SnapshotRow): Indexes {
  return { all: "yes", id: row.id, name: row.name, owner: row.owner, ...(!isReady(row) && { creating: "yes" }) };
}

export function snapshotRows(store: Store): Collection<SnapshotRow> {
  return new Collection(store, "snapshot", snapshotIndexes);
}

/**
 * The bytes that count against the quota of their owner: what is in several snapshots counts once. Layers of images count too: they are stored
 * for snapshots only, and each image has others.
 */
export function bytesOf(rows: readonly Pick<SnapshotRow, "parts">[]): number {
  const sizes = new Map<string, number>();
  for (const { parts } of rows) for (const part of parts) sizes.set(part.digest, part.bytes);
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}
