import type { Catalogue, EnvironmentConfig, EnvironmentStatus, ToolDescriptor, Visibility } from "@aenv/contract";
import type { Indexes } from "../../stores/store.ts";

/** What an environment offers, found out by starting it. */
export interface Metadata {
  readonly tools: readonly ToolDescriptor[];
  readonly catalogue: Catalogue;
  /** Null where they could not be listed, as when they need data that the sandbox did not have; */
  readonly taskCount: number | null;
  /** this says why. */
  readonly tasksProblem?: string | null;
  readonly keepsStateInModules: boolean;
}

export interface Artifact {
  readonly id: string;
  readonly type: string;
  readonly content: string;
}

/** One line of a version's story. */
export interface VersionEvent {
  readonly at: string;
  readonly by: string;
  readonly what: "published" | "verified" | "status" | "released" | "visibility" | "removed";
  /** What it became. */
  readonly detail?: string;
}

/** What is published: it never changes, and `contentDigest` stands for it. Only the metadata may come later. */
export interface Content {
  readonly name: string;
  readonly version: string;
  /** config.json as it was sent, without what is kept beside it: status, artifacts, visibility. */
  readonly config: EnvironmentConfig;
  readonly artifacts: readonly Artifact[];
  readonly dependencies: readonly string[];
  /** sha256 of the bundle's uncompressed tar, as `aenv build` computes it. */
  readonly bundleDigest: string | null;
  /** The project's own files, as the original's client uploads them. */
  readonly sourceDigest: string | null;
  readonly metadata: Metadata | null;
  readonly createdAt: string;
}

/** A version as lists see it: short, because every version is held in memory for searches. */
export interface VersionRow {
  readonly name: string;
  readonly version: string;
  /** Whose name it is. */
  readonly owner: string;
  readonly publisher: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly status: EnvironmentStatus;
  readonly visibility: Visibility;
  readonly sharedWith: readonly string[];
  readonly contentDigest: string;
  readonly bundleDigest: string | null;
  readonly sourceDigest: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly history: readonly VersionEvent[];
  /** A removed version stays as a row: what was released once never becomes something else under the same name. */
  readonly isRemoved: boolean;
}

/** A published environment, `tau2@1.0.2`, whole. */
export type EnvironmentVersion = Omit<VersionRow, "isRemoved"> & Pick<Content, "config" | "artifacts" | "dependencies" | "metadata">;

const HISTORY_KEPT = 100;

/** No name holds an '@', so no two versions share a key. */
export function versionKey(name: string, version: string): string {
  return `${name}@${version}`;
}

export function versionIndexes(row: VersionRow): Indexes {
  // Removed ones count too: an owner who publishes and removes without end comes to one.
  const { owner } = row;
  if (row.isRemoved) return { owner, removed: "yes" };
  return {
    owner,
    all: "yes",
    name: row.name,
    ...(row.bundleDigest !== null && { bundle: row.bundleDigest }),
    ...(row.sourceDigest !== null && { source: row.sourceDigest }),
  };
}

export function wholeOf({ isRemoved: _, ...row }: VersionRow, content: Content): EnvironmentVersion {
  const { config, artifacts, dependencies, metadata } = content;
  return { ...row, config, artifacts, dependencies, metadata };
}

/** The row after something has happened to it. The first line of its story is never forgotten. */
export function happened(row: VersionRow, event: VersionEvent, change: Partial<VersionRow> = {}): VersionRow {
  const [first, ...rest] = [...row.history, event];
  const history = first === undefined ? [] : [first, ...rest.slice(1 - HISTORY_KEPT)];
  return { ...row, ...change, updatedAt: event.at, history };
}
