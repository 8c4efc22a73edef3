import { posix } from "node:path";
import type { ArtifactConfig } from "../../task/config/artifact.ts";

/** The directory that is always collected. */
export const ARTIFACTS_DIRECTORY = "/logs/artifacts";

export interface PlannedArtifact extends ArtifactConfig {
  /** Path below the trial's `artifacts/`. */
  readonly hostPath: string;
  /** Its place belongs to an earlier entry: it is not collected. */
  readonly isSkipped: boolean;
}

/** What is collected, and where it goes: the absolute path in the container, or the given destination. */
export function planArtifacts(...lists: readonly (readonly (string | ArtifactConfig)[])[]): PlannedArtifact[] {
  const entries = lists.flat().map(entryOf);
  const isNamed = entries.some(({ source }) => source.replace(/\/+$/, "") === ARTIFACTS_DIRECTORY);
  const all = isNamed ? entries : [entryOf(ARTIFACTS_DIRECTORY), ...entries];
  // Entries of the agent's container come first: other services may only be read later.
  const ordered = [...all.filter(isMain), ...all.filter((entry) => !isMain(entry))];
  const claimed: PlannedArtifact[] = [];
  for (const entry of ordered) {
    const hostPath = hostPathOf(entry);
    const isSkipped = claimed.some((other) => !other.isSkipped && overlaps(other.hostPath, hostPath) && !isSameSource(other, entry));
    claimed.push({ ...entry, hostPath, isSkipped });
  }
  return claimed;
}

export type ArtifactStatus = "ok" | "failed" | "empty" | "skipped";

export interface ManifestEntry {
  readonly source: string;
  readonly destination: string;
  readonly type: "file" | "directory";
  readonly status: ArtifactStatus;
  readonly service: string | null;
  /** Patterns that were left out of a directory. */
  readonly exclude: readonly string[];
}

export function manifestEntry(artifact: PlannedArtifact, type: ManifestEntry["type"], status: ArtifactStatus): ManifestEntry {
  const { source, hostPath, service } = artifact;
  const exclude = type === "directory" ? artifact.exclude : [];
  return { source, destination: hostPath === "" ? "artifacts" : `artifacts/${hostPath}`, type, status, service, exclude };
}

/** What a source is taken for if the container cannot tell: a name without an extension is a directory. */
export function guessedType(source: string): ManifestEntry["type"] {
  return posix.extname(source.replace(/\/+$/, "")) === "" ? "directory" : "file";
}

function entryOf(given: string | ArtifactConfig): ArtifactConfig {
  return typeof given === "string" ? { source: given, destination: null, exclude: [], service: null } : given;
}

function isMain({ service }: ArtifactConfig): boolean {
  return service === null || service === "main";
}

function hostPathOf({ source, destination }: ArtifactConfig): string {
  const parts = (destination || source).split("/").filter((part) => part !== "" && part !== "." && part !== "..");
  return parts.join("/");
}

function isSameSource(a: ArtifactConfig, b: ArtifactConfig): boolean {
  return a.source.replace(/\/+$/, "") === b.source.replace(/\/+$/, "") && isMain(a) === isMain(b) && (isMain(a) || a.service === b.service);
}

function overlaps(a: string, b: string): boolean {
  return a === b || a === "" || b === "" || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}
