import { compareText } from "@aenv/benchmark";
import { sha256 } from "./files.ts";

/** The content hash of a dataset: of its tasks' digests and of its own files. */
export function datasetHash(taskDigests: readonly string[], files: readonly { readonly path: string; readonly digest: string }[]): string {
  const tasks = taskDigests.map(hexOf).sort(compareText).join(",");
  const own = files
    .map(({ path, digest }) => `${path}:${hexOf(digest)}`)
    .sort(compareText)
    .join(",");
  return sha256(files.length === 0 ? tasks : `${tasks};${own}`);
}

function hexOf(digest: string): string {
  return digest.replace(/^sha256:/, "");
}
