import { createHash } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BundleManifest, invalidBundle, readTar, type TarFile } from "@aenv/contract";
import { type ArchiveLimits, archiveLimits, type Bytes, gunzip } from "../archives/gunzip.ts";
import { parseManifest } from "./manifest.ts";

export interface UnpackLimits extends ArchiveLimits {
  readonly maxFiles: number;
}

export const unpackLimits: UnpackLimits = { ...archiveLimits, maxFiles: 20_000 };

const MANIFEST = "manifest.json";
const MAX_MANIFEST_BYTES = 16 * 2 ** 20;

/**
 * Unpacks a bundle into a new folder. Checks every file against the bundle's manifest and the whole archive against `digest`.
 * On an error the folder may hold some of the files: the caller deletes it.
 */
export async function unpack(
  archive: Bytes,
  folder: string,
  { digest, limits = unpackLimits }: { digest?: string; limits?: UnpackLimits } = {},
): Promise<BundleManifest> {
  await mkdir(folder, { mode: 0o755 });
  return gunzip(archive, { limits }, async (unpacked) => {
    const hash = createHash("sha256");
    const found = await writeAll(readTar(hashed(unpacked, hash)), folder, limits);
    const seen = `sha256:${hash.digest("hex")}`;
    if (digest !== undefined && seen !== digest) throw invalidBundle(`is ${seen}, not ${digest}`);
    return found;
  });
}

async function writeAll(files: AsyncIterable<TarFile>, folder: string, limits: UnpackLimits): Promise<BundleManifest> {
  const paths = new Paths();
  const sums = new Map<string, { size: number; sha256: string }>();
  let manifest: Buffer | null = null;
  let total = 0;
  for await (const file of files) {
    paths.add(file.path);
    total += file.size;
    if (sums.size >= limits.maxFiles) throw invalidBundle(`holds more than ${limits.maxFiles} files`);
    if (total > limits.maxUnpackedBytes) throw invalidBundle(`holds more than ${limits.maxUnpackedBytes} bytes`);
    const isManifest = file.path === MANIFEST;
    if (isManifest && file.size > MAX_MANIFEST_BYTES)
      throw invalidBundle(`has a ${MANIFEST} of ${file.size} bytes; at most ${MAX_MANIFEST_BYTES} are allowed`);
    const kept: Uint8Array[] = [];
    const sha256 = await write(file, join(folder, ...file.path.split("/")), isManifest ? kept : null);
    if (isManifest) manifest = Buffer.concat(kept);
    else sums.set(file.path, { size: file.size, sha256 });
  }
  if (manifest === null) throw invalidBundle(`has no ${MANIFEST}; make it with 'aenv build'`);
  return parseManifest(manifest, sums);
}

/** Writes one new file and returns its sha256. It is read-only, because sandboxes share it. */
async function write(file: TarFile, path: string, kept: Uint8Array[] | null): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  const hash = createHash("sha256");
  await using handle = await open(path, "wx", file.isExecutable ? 0o555 : 0o444);
  for await (const chunk of file.body) {
    hash.update(chunk);
    kept?.push(Uint8Array.from(chunk));
    await handle.writeFile(chunk);
  }
  await handle.sync();
  return hash.digest("hex");
}

async function* hashed(chunks: AsyncIterable<Uint8Array>, hash: { update(bytes: Uint8Array): unknown }) {
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
}

/** The paths of one archive. Refuses paths that a file system may treat as equal, and a file used as a folder. */
class Paths {
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  add(path: string): void {
    const folded = path.normalize("NFC").toLowerCase().normalize("NFC");
    if (this.#files.has(folded)) throw invalidBundle(`holds ${JSON.stringify(path)} twice`);
    if (this.#folders.has(folded)) throw invalidBundle(`holds ${JSON.stringify(path)} as a file and as a folder`);
    const parts = folded.split("/");
    for (let length = 1; length < parts.length; length += 1) {
      const parent = parts.slice(0, length).join("/");
      if (this.#files.has(parent)) throw invalidBundle(`holds ${JSON.stringify(parent)} as a file and as a folder`);
      this.#folders.add(parent);
    }
    this.#files.add(folded);
  }
}
