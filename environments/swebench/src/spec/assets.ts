import { isList, isObject, type Json } from "@aenv/benchmark";

/** A binary file that the tests need. A patch cannot hold it. */
export interface Asset {
  /** Path in the repository. */
  readonly path: string;
  /** Null if it cannot be downloaded. */
  readonly url: string | null;
  /** Where it is stored in the sandbox, outside of the repository: the script resets the repository before the tests. */
  readonly storedAt: string;
  /** Copies it to its place. */
  readonly command: string;
}

/** The files in the column `image_assets`: those of the patch with the tests, then those of the patch with the solution. */
export function listAssets(imageAssets: Json): Asset[] {
  if (!isObject(imageAssets)) return [];
  return ["test_patch", "patch"].flatMap((key) => {
    const entries = imageAssets.get(key);
    return isList(entries) ? entries.flatMap(readAsset) : [];
  });
}

function readAsset(entry: Json): Asset[] {
  const path = isObject(entry) ? entry.get("path") : undefined;
  const url = isObject(entry) ? entry.get("url") : undefined;
  if (typeof path !== "string" || path === "") return [];
  const storedAt = `/image_assets/${path.replaceAll("/", "__")}`;
  const command = `mkdir -p $(dirname ${path}) && cp ${storedAt} ${path}`;
  return [{ path, url: typeof url === "string" && url !== "" ? url : null, storedAt, command }];
}
