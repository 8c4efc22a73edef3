import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { PlatformError } from "@aenv/contract";
import type { Store } from "../../stores/store.ts";
import { hexOf } from "./digest.ts";
import { isMissing, listNames, moveIfAbsent, moveIntoPlace } from "./files.ts";
import { type ArchiveLimits, archiveLimits, type Bytes, gunzip } from "./gunzip.ts";
import { BlobOwnership } from "./ownership.ts";
import { VerifiedStream } from "./verified-stream.ts";

/** A stored archive, addressed by the digest of its uncompressed content, so that the compressor does not matter. */
export interface Blob {
  /** sha256 of the archive before compression, as `aenv build` computes it. */
  readonly digest: string;
  /** sha256 of the file as it is stored and sent. */
  readonly archiveDigest: string;
  /** Bytes of the file as it is stored and sent. */
  readonly size: number;
  readonly unpackedSize: number;
}

/** The content of the `.json`: the blob, and the name of its file. */
export interface BlobRecord extends Blob {
  readonly file: string;
}

export interface BlobStoreOptions {
  readonly home: string;
  readonly store: Store;
  /** The quota of an owner, in bytes. */
  readonly quotaOf: (owner: string) => number;
  /** The largest upload. */
  readonly maxBytes?: number;
  readonly limits?: ArchiveLimits;
  /** How long an upload that is not published is kept. */
  readonly graceMs?: number;
  readonly now?: () => Date;
}

export interface Upload {
  readonly owner: string;
  /** The announced digest; the upload is refused if it differs. */
  readonly digest?: string;
  readonly signal?: AbortSignal;
}

/**
 * Archives by digest, in `blobs/sha256/ab/`: the file, and a `<digest>.json` that describes it and names the file.
 * The `.json` is written last: a blob exists if its `.json` exists.
 */
export class BlobStore {
  readonly ownership: BlobOwnership;
  readonly #root: string;
  readonly #maxBytes: number;
  readonly #limits: ArchiveLimits;
  readonly #graceMs: number;
  readonly #now: () => Date;
  /** Files of uploads that are under way. No sweep deletes them, however long the upload takes. */
  readonly #inUse = new Set<string>();

  constructor({ home, store, quotaOf, maxBytes = 512 * 2 ** 20, limits = archiveLimits, graceMs = 3_600_000, now }: BlobStoreOptions) {
    this.ownership = new BlobOwnership(store, quotaOf);
    this.#root = join(home, "blobs");
    this.#maxBytes = maxBytes;
    this.#limits = limits;
    this.#graceMs = graceMs;
    this.#now = now ?? (() => new Date());
  }

  /**
   * Stores a tar.gz while it streams in: completely and verified, or not at all. What the owner has uploaded before is not
   * read again. The source is left open on an error, so that an error response can be sent.
   */
  async put(source: Bytes, { owner, digest, signal }: Upload): Promise<Blob> {
    if (digest !== undefined && (await this.ownership.has(owner, digest))) {
      const known = await this.find(digest);
      if (known !== null && (await this.keep(digest))) return known;
    }
    await using temporary = await this.#temporary();
    using meter = await this.ownership.open(owner);
    const blob = await this.#receive(source, temporary.path, (bytes) => meter.add(bytes), signal);
    if (digest !== undefined && blob.digest !== digest) {
      throw new PlatformError("bundle.invalid", `the upload is ${blob.digest}, not ${digest} as announced; build again and push again`);
    }
    const isNew = await this.ownership.add(owner, blob.digest, blob.size, this.#now());
    try {
      return await this.#store(blob, temporary.path);
    } catch (error) {
      if (isNew) await this.ownership.release(owner, blob.digest);
      throw error;
    }
  }

  async find(digest: string): Promise<Blob | null> {
    const record = await this.#read(digest);
    if (record === null) return null;
    const { file: _, ...blob } = record;
    return blob;
  }

  /** The archive as it was uploaded. If it is damaged, the stream fails before its last bytes, so no reader takes it as complete. */
  async open(digest: string): Promise<{ blob: Blob; stream: Readable }> {
    const record = await this.#read(digest);
    if (record === null) throw missing(digest);
    const file = await open(this.#path(digest, record.file), "r").catch((error: unknown) => {
      throw isMissing(error) ? missing(digest) : error;
    });
    const { file: _, ...blob } = record;
    const raw = file.createReadStream({ highWaterMark: 256 * 1024 });
    const stream = new VerifiedStream(blob.archiveDigest, () => this.#discard(record));
    raw.on("error", (error) => stream.destroy(error));
    stream.on("close", () => raw.destroy());
    return { blob, stream: raw.pipe(stream) };
  }

  /** Marks a blob as used now, so that no sweep deletes it; false if it does not exist. */
  async keep(digest: string): Promise<boolean> {
    try {
      await this.#touch(this.#recordPath(digest));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** Deletes unreferenced blobs and the rest of broken uploads once they are old enough; returns the deleted digests. */
  async collect(referenced: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const gone = new Set<string>();
    for (const name of await listNames(this.#tmp)) await this.#sweep(join(this.#tmp, name));
    for (const prefix of await listNames(join(this.#root, "sha256"))) {
      for (const name of await listNames(join(this.#root, "sha256", prefix))) {
        const [hex = "", ending] = name.split(".");
        if (!/^[0-9a-f]{64}$/.test(hex)) continue;
        if (await this.#collectFile(`sha256:${hex}`, name, ending === "json", referenced)) gone.add(`sha256:${hex}`);
      }
    }
    const isThere = async (digest: string) => (await this.#read(digest)) !== null;
    await this.ownership.prune(isThere, new Date(this.#now().getTime() - this.#graceMs));
    return gone;
  }

  /** True if the file was a blob's record and the blob was deleted. */
  async #collectFile(digest: string, name: string, isRecord: boolean, referenced: ReadonlySet<string>): Promise<boolean> {
    const record = await this.#read(digest);
    if (!isRecord) {
      if (record?.file !== name) await this.#sweep(this.#path(digest, name));
      return false;
    }
    if (referenced.has(digest) || !(await this.#sweep(this.#path(digest, name)))) return false;
    if (record !== null) await rm(this.#path(digest, record.file), { force: true });
    return true;
  }

  async #receive(source: Bytes, path: string, onBytes: (bytes: number) => void, signal: AbortSignal | undefined): Promise<Blob> {
    const [packedHash, unpackedHash] = [createHash("sha256"), createHash("sha256")];
    const maxBytes = this.#maxBytes;
    let [size, unpackedSize] = [0, 0];
    await using file = await open(path, "wx", 0o600);
    const onPacked = async (chunk: Uint8Array) => {
      size += chunk.length;
      if (size > maxBytes)
        throw new PlatformError("request.too_large", `the upload is larger than ${maxBytes} bytes`, { details: { maxBytes } });
      onBytes(chunk.length);
      packedHash.update(chunk);
      await file.writeFile(chunk);
    };
    await gunzip(source, { limits: this.#limits, onPacked, ...(signal !== undefined && { signal }) }, async (unpacked) => {
      for await (const chunk of unpacked) {
        unpackedSize += chunk.length;
        unpackedHash.update(chunk);
      }
    });
    if (unpackedSize === 0) throw new PlatformError("bundle.invalid", "the upload is empty");
    const [digest, archiveDigest] = [unpackedHash, packedHash].map((hash) => `sha256:${hash.digest("hex")}`) as [string, string];
    return { digest, archiveDigest, size, unpackedSize };
  }

  /** Moves an upload into place, unless the blob exists. */
  async #store(blob: Blob, temporary: string): Promise<Blob> {
    const { digest } = blob;
    if (await this.keep(digest)) return (await this.find(digest)) ?? blob;
    // A unique name, so that a sweep of an old record never deletes the file of a new upload.
    const record: BlobRecord = { ...blob, file: `${hexOf(digest)}.${randomUUID()}.tar.gz` };
    const path = this.#path(digest, record.file);
    await mkdir(dirname(path), { recursive: true });
    using _content = this.#use(path);
    await moveIntoPlace(temporary, path);
    await using written = await this.#temporary();
    await writeFile(written.path, JSON.stringify(record), { mode: 0o600 });
    await this.#touch(written.path);
    while (!(await moveIfAbsent(written.path, this.#recordPath(digest)))) {
      const known = await this.find(digest);
      if (known === null || !(await this.keep(digest))) continue;
      await rm(path, { force: true });
      return known;
    }
    return blob;
  }

  /** A damaged blob counts as missing, so that the next upload of the same content replaces it. */
  async #discard(record: BlobRecord): Promise<void> {
    if ((await this.#read(record.digest))?.file === record.file) await rm(this.#recordPath(record.digest), { force: true });
  }

  /** Deletes a file that is old enough; false if it is too young or does not exist. */
  async #sweep(path: string): Promise<boolean> {
    if (this.#inUse.has(path)) return false;
    await using trash = await this.#temporary();
    try {
      if (await this.#isYoung(path)) return false;
      await rename(path, trash.path);
      // It may have been used between the check and the move.
      if (await this.#isYoung(trash.path)) {
        await moveIfAbsent(trash.path, path);
        return false;
      }
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  async #isYoung(path: string): Promise<boolean> {
    return (await stat(path)).mtimeMs > this.#now().getTime() - this.#graceMs;
  }

  async #touch(path: string): Promise<void> {
    const now = this.#now();
    await utimes(path, now, now);
  }

  async #read(digest: string): Promise<BlobRecord | null> {
    try {
      return JSON.parse(await readFile(this.#recordPath(digest), "utf8")) as BlobRecord;
    } catch (error) {
      // An unreadable record is deleted, so that the next upload of the same content replaces it.
      if (error instanceof SyntaxError) await rm(this.#recordPath(digest), { force: true });
      else if (!isMissing(error)) throw error;
      return null;
    }
  }

  #recordPath(digest: string): string {
    return this.#path(digest, `${hexOf(digest)}.json`);
  }

  #path(digest: string, file: string): string {
    return join(this.#root, "sha256", hexOf(digest).slice(0, 2), file);
  }

  get #tmp(): string {
    return join(this.#root, "tmp");
  }

  /** A path for a new file, which is removed at the end if it is still there. */
  async #temporary(): Promise<AsyncDisposable & { readonly path: string }> {
    await mkdir(this.#tmp, { recursive: true, mode: 0o700 });
    const path = join(this.#tmp, randomUUID());
    const use = this.#use(path);
    return {
      path,
      [Symbol.asyncDispose]: async () => {
        await rm(path, { force: true });
        use[Symbol.dispose]();
      },
    };
  }

  #use(path: string): Disposable {
    this.#inUse.add(path);
    return { [Symbol.dispose]: () => void this.#inUse.delete(path) };
  }
}

function missing(digest: string): PlatformError {
  return new PlatformError("bundle.not_found", `no bundle ${digest} is stored; upload it first`, { details: { digest } });
}
