import { ARTIFACTS_FUNCTION, type EpisodeArtifacts, episodeArtifacts, messageOf, PlatformError } from "@aenv/contract";
import * as z from "zod";
import type { Episode } from "./episode.ts";

/** Files of an episode by relative path. */
export type Artifacts = ReadonlyMap<string, Uint8Array>;

export interface TakenArtifacts {
  readonly files: Artifacts;
  /** Why there are none; null if nothing went wrong. */
  readonly error: string | null;
}

export const noArtifacts: TakenArtifacts = { files: new Map(), error: null };

/** Limit of all files of an episode together. */
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_FILES = 1_000;
const MOST_PATH_BYTES = 1_000;
const MOST_NAME_BYTES = 200;
const TIMEOUT_MS = 120_000;

/** Asks the environment for the files of an episode. Never throws: a score that exists stays, whatever happens to the files. */
export async function takeArtifacts(episode: Pick<Episode, "abilities" | "instance">, signal: AbortSignal): Promise<TakenArtifacts> {
  if (episode.abilities.artifacts !== true) return noArtifacts;
  try {
    return {
      files: readArtifacts(await episode.instance.callFunction(ARTIFACTS_FUNCTION, {}, { signal, timeoutMs: TIMEOUT_MS })),
      error: null,
    };
  } catch (error) {
    return { ...noArtifacts, error: messageOf(error) };
  }
}

/** The files in the answer of an environment, which is not trusted: the names stay inside of a folder, and the sizes have a limit. */
export function readArtifacts(answer: unknown): Map<string, Uint8Array> {
  const parsed = episodeArtifacts.safeParse(answer);
  if (!parsed.success) throw invalid(`the answer is not { files: { "path": { text } or { base64 } } }: ${z.prettifyError(parsed.error)}`);
  const entries = Object.entries(parsed.data.files);
  if (entries.length > MOST_FILES) throw invalid(`there are ${entries.length} files, and ${MOST_FILES} are allowed`);
  for (const [path] of entries) {
    const problem = problemOf(path);
    if (problem !== null) throw invalid(`'${path.slice(0, 100)}' is not the path of a file: ${problem}`);
  }
  const files = new Map(entries.map(([path, content]) => [path, bytesOf(content)]));
  const total = [...files.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (total > MOST_BYTES) throw invalid(`the files have ${total} bytes, and ${MOST_BYTES} are allowed`);
  for (const path of files.keys()) {
    const folder = foldersOf(path).find((one) => files.has(one));
    if (folder !== undefined) throw invalid(`'${folder}' is a file and the folder of '${path}'`);
  }
  return files;
}

function problemOf(path: string): string | null {
  if (Buffer.byteLength(path) > MOST_PATH_BYTES) return `it is longer than ${MOST_PATH_BYTES} bytes`;
  if (/[\\\p{Cc}]/u.test(path)) return "it contains a backslash or a control character";
  for (const name of path.split("/")) {
    if (name === "" || name === "." || name === "..") return "it must be relative, without '.' and '..'";
    if (Buffer.byteLength(name) > MOST_NAME_BYTES) return `a name in it is longer than ${MOST_NAME_BYTES} bytes`;
  }
  return null;
}

function bytesOf(content: EpisodeArtifacts["files"][string]): Uint8Array {
  return "text" in content ? Buffer.from(content.text) : Buffer.from(content.base64, "base64");
}

/** `a` and `a/b` of `a/b/c`. */
function foldersOf(path: string): string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, at) => names.slice(0, at + 1).join("/"));
}

function invalid(reason: string): PlatformError {
  return new PlatformError("function.failed", `the function ${ARTIFACTS_FUNCTION} of the environment returned no valid files: ${reason}`);
}
