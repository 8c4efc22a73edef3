import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { readBoundedBytes } from "@aenv/kit";
import { readArchive } from "./archive.ts";

/** The required files of the benchmark, by path from its root. */
export interface Checkout {
  /** Its path or URL, for messages. */
  readonly from: string;
  has(path: string): boolean;
  bytes(path: string): Buffer;
  text(path: string): string;
  /** The files below a folder, sorted. */
  list(folder: string): string[];
}

/** The benchmark has 40 MB. */
const MAX_ARCHIVE_BYTES = 2 ** 30;

/** Opens a directory, a .tar.gz archive, or the URL of one. A directory may also be that of the data alone. */
export async function openCheckout(from: string, fetchArchive: typeof fetch = fetch): Promise<Checkout> {
  if (/^https?:\/\//.test(from)) {
    const response = await fetchArchive(from);
    if (!response.ok)
      throw new Error(`${from} answered ${response.status} ${response.statusText}; expected a .tar.gz archive of the benchmark`);
    return archived(from, Buffer.from(await readBoundedBytes(response.body, { maxBytes: MAX_ARCHIVE_BYTES })));
  }
  if (!existsSync(from))
    throw new Error(
      `${from} does not exist; pass a checkout of the benchmark, the folder of its data, a .tar.gz archive of a checkout, or its URL`,
    );
  if (!statSync(from).isDirectory()) return archived(from, readFileSync(from));
  const found = directory(from);
  return found.has("data/tau2") || !found.has("user_simulator") ? found : dataDirectory(found);
}

/** The data without the rest of a checkout: its domains are at the top, beside the files for the simulated user. */
function dataDirectory(found: Checkout): Checkout {
  const placeOf = (path: string) => path.replace(/^data\/tau2\/(?:domains\/)?/, "");
  return {
    from: found.from,
    has: (path) => found.has(placeOf(path)),
    bytes: (path) => found.bytes(placeOf(path)),
    text: (path) => found.text(placeOf(path)),
    list: (folder) => found.list(placeOf(folder)).map((path) => `${folder}${path.slice(placeOf(folder).length)}`),
  };
}

function directory(root: string): Checkout {
  const list = (folder: string): string[] => {
    if (!existsSync(join(root, folder))) return [];
    const entries = readdirSync(join(root, folder), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    return entries.flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? list(path) : entry.isFile() ? [path] : [];
    });
  };
  return {
    from: root,
    has: (path) => existsSync(join(root, path)),
    bytes: (path) => readFileSync(join(root, path)),
    text: (path) => readFileSync(join(root, path), "utf8"),
    list,
  };
}

const NEEDED = /^(?:LICENSE$|src\/tau2\/.*\.py$|data\/tau2\/(?:domains|user_simulator)\/)/;

async function archived(from: string, bytes: Buffer): Promise<Checkout> {
  const files = new Map<string, Buffer>();
  for await (const { path, content } of readArchive(bytes, from)) {
    // Archives of a revision have one top-level folder, named after the revision.
    for (const candidate of [path, path.slice(path.indexOf("/") + 1)]) if (NEEDED.test(candidate)) files.set(candidate, content);
  }
  const bytesOf = (path: string): Buffer => {
    const content = files.get(path);
    if (!content) throw new Error(`${from} does not contain ${path}`);
    return content;
  };
  return {
    from,
    has: (path) => files.has(path) || [...files.keys()].some((known) => known.startsWith(`${path}/`)),
    bytes: bytesOf,
    text: (path) => bytesOf(path).toString("utf8"),
    list: (folder) => [...files.keys()].filter((path) => path.startsWith(`${folder}/`)).sort(),
  };
}
