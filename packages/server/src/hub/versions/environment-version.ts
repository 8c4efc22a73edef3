import type {
  Catalogue,
  ChildUse,
  EnvironmentConfig,
  EnvironmentStatus,
  EpisodeAbilities,
  ToolDescriptor,
  Visibility,
} from "@aenv/contract";
import type { Indexes } from "../../stores/store.ts";

/** What an environment offers, read from a started instance when it is published. */
export interface Metadata {
  readonly tools: readonly ToolDescriptor[];
  readonly catalogue: Catalogue;
  /** Null if they could not be listed, for example because the sandbox lacked their data; then `tasksProblem` has the reason. */
  readonly taskCount: number | null;
  readonly tasksProblem?: string | null;
  readonly keepsStateInModules: boolean;
  /** The parts of an episode that a program has; absent for other environments, and for programs without episodes. */
  readonly abilities?: EpisodeAbilities;
}

export interface Artifact {
  readonly id: string;
  readonly type: string;
  readonly content: string;
}

/** One entry of a version's history. */
export interface VersionEvent {
  readonly at: string;
  readonly by: string;
  readonly what: "published" | "verified" | "status" | "released" | "visibility" | "removed";
  /** The new value. */
  readonly detail?: string;
}

/** The published content, addressed by `contentDigest`. It never changes, except that metadata may be added later. */
export interface Content {
  readonly name: string;
  readonly version: string;
  /** config.json as it was sent, without the fields stored separately: status, artifacts, visibility. */
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

/** One entry of `deployConfig.uses`, resolved when the version was published. */
export interface PinnedChild extends Omit<ChildUse, "env"> {
  readonly environment: { readonly name: string; readonly version: string };
  readonly contentDigest: string;
}

/** A version without its content. Kept short, because searches hold every version in memory. */
export interface VersionRow {
  readonly name: string;
  readonly version: string;
  /** The owner of the name. */
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
  /** The versions that `deployConfig.uses` was resolved to; absent if it uses none. */
  readonly children?: readonly PinnedChild[];
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly history: readonly VersionEvent[];
  /** The row of a removed version stays, so that a released version number is never reused for other content. */
  readonly isRemoved: boolean;
}

/** A published environment such as `tau2@1.0.2`: row and content. */
export type EnvironmentVersion = Omit<VersionRow, "isRemoved"> &
  Required<Pick<VersionRow, "children">> &
  Pick<Content, "config" | "artifacts" | "dependencies" | "metadata">;

const HISTORY_KEPT = 100;

/** Names contain no '@', so keys are unique. */
export function versionKey(name: string, version: string): string {
  return `${name}@${version}`;
}

/** The index of the versions that use this one. */
export function usedIndex(name: string, version: string): string {
  return `uses:${versionKey(name, version)}`;
}

export function versionIndexes(row: VersionRow): Indexes {
  // Removed versions count against the limit too, so that publishing and removing in a loop is bounded.
  const { owner } = row;
  if (row.isRemoved) return { owner, removed: "yes" };
  return {
    owner,
    all: "yes",
    name: row.name,
    ...(row.bundleDigest !== null && { bundle: row.bundleDigest }),
    ...(row.sourceDigest !== null && { source: row.sourceDigest }),
    ...Object.fromEntries((row.children ?? []).map(({ environment: { name, version } }) => [usedIndex(name, version), "yes"])),
  };
}

export function environmentOf({ isRemoved: _, ...row }: VersionRow, content: Content): EnvironmentVersion {
  const { config, artifacts, dependencies, metadata } = content;
  return { ...row, children: row.children ?? [], config, artifacts, dependencies, metadata };
}

/** The row with a change and its event in the history. The first event is never dropped. */
export function withEvent(row: VersionRow, event: VersionEvent, change: Partial<VersionRow> = {}): VersionRow {
  const [first, ...rest] = [...row.history, event];
  const history = first === undefined ? [] : [first, ...rest.slice(1 - HISTORY_KEPT)];
  return { ...row, ...change, updatedAt: event.at, history };
}
