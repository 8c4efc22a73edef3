import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { PlatformError } from "@aenv/contract";
import type { Store } from "../../stores/store.ts";
import { hexOf } from "./digest.ts";
import { isMissing, namesIn, settle, settleFirst } from "./files.ts";
import { type ArchiveLimits, archiveLimits, type Bytes, gunzip } from "./gunzip.ts";
import { Holdings } from "./ownership.ts";
import { Verified } from "./verified-stream.ts";

/** A stored archive. It is addressed by what it holds, so that the compressor does not matter. */
export interface Blob {
  /** sha256 of the archive before compression, as `aenv build` names it. */
  readonly digest: string;
  /** sha256 of the file as it is stored and sent. */
  readonly archiveDigest: string;
  /** Bytes of the file as it is stored and sent. */
  readonly size: number;
  readonly unpackedSize: number;
}

/** What stands in the `.json`: the blob, and the name of its file beside it. */
interface Label extends Blob {
  readonly file: string;
}

export interface BlobStoreOptions {
  readonly home: string;
  readonly store: Store;
  /** Bytes that an owner may store. */
  readonly quotaOf: (owner: string) => number;
  /** The largest upload. */
  readonly maxBytes?: number;
  readonly limits?: ArchiveLimits;
  /** How long an upload may wait to be published before it is swept away. */
  readonly graceMs?: number;
  readonly now?: () => Date;
}

export interface Upload {
  readonly owner: string;
  /** What the uploader says it is; the upload is refused if it is not. */
  readonly digest?: string;
  readonly signal?: AbortSignal;
}

/**
 * Archives by content, in `blobs/sha256/ab/`: the file, and a `<digest>.json` that says what it is and which file it is.
 * The `.json` is written last: a blob is there when that is there.
 */
export class BlobStore {
  readonly holdings: Holdings;
  readonly #root: string;
  readonly #maxBytes: number;
  readonly #limits: ArchiveLimits;
  readonly #graceMs: number;
  readonly #now: () => Date;

  constructor({ home, store, quotaOf, maxBytes = 512 * 2 ** 20, limits = archiveLimits, graceMs = 3_600_000, now }: BlobStoreOptions) {
    this.holdings = new Holdings(store, quotaOf);
    this.#root = join(home, "blobs");
    this.#maxBytes = maxBytes;
    this.#limits = limits;
    this.#graceMs = graceMs;
    this.#now = now ?? (() => new Date());
  }

  /**
   * Takes a tar.gz as it streams in. Either it is stored whole and verified, or nothing of it stays. What the owner has
   * uploaded before is not read again. The source is left open on an error, so that its sender can be told.
   */
  async put(source: Bytes, { owner, digest, signal }: Upload): Promise<Blob> {
    if (digest !== undefined && (await this.holdings.has(owner, digest))) {
      const known = await this.find(digest);
      if (known !== null && (await this.keep(digest))) return known;
    }
    const temporary = await this.#temporary();
    using meter = await this.holdings.open(owner);
    try {
      const blob = await this.#receive(source, temporary, (bytes) => meter.add(bytes), signal);
      if (digest !== undefined && blob.digest !== digest) {
        throw new PlatformError("bundle.invalid", `the upload is ${blob.digest}, not ${digest} as announced; build again and push again`);
      }
      const isNew = await this.holdings.hold(owner, blob.digest, blob.size, this.#now());
      try {
        return await this.#store(blob, temporary);
      } catch (error) {
        if (isNew) await this.holdings.release(owner, blob.digest);
        throw error;
      }
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async find(digest: string): Promise<Blob | null> {
    const label = await this.#label(digest);
    if (label === null) return null;
    const { file: _, ...blob } = label;
    return blob;
  }

  /** The archive as it was uploaded. A damaged one breaks the stream before its last bytes: no reader takes it for whole. */
  async open(digest: string): Promise<{ blob: Blob; stream: Readable }> {
    const label = await this.#label(digest);
    if (label === null) throw missing(digest);
    const file = await open(this.#path(digest, label.file), "r").catch((error: unknown) => {
      throw isMissing(error) ? missing(digest) : error;
    });
    const { file: _, ...blob } = label;
    const raw = file.createReadStream({ highWaterMark: 256 * 1024 });
    const stream = new Verified(blob.archiveDigest, () => this.#disown(label));
    raw.on("error", (error) => stream.destroy(error));
    stream.on("close", () => raw.destroy());
    return { blob, stream: raw.pipe(stream) };
  }

  /** Marks a blob as just used, so that no sweep takes it for forgotten; false if it is not there. */
  async keep(digest: string): Promise<boolean> {
    try {
      await this.#touch(this.#labelPath(digest));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** Removes what nobody refers to and what broken uploads have left, once it is old enough; answers the digests that are gone. */
  async collect(referenced: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const gone = new Set<string>();
    for (const name of await namesIn(this.#tmp)) await this.#sweep(join(this.#tmp, name));
    for (const shelf of await namesIn(join(this.#root, "sha256"))) {
      for (const name of await namesIn(join(this.#root, "sha256", shelf))) {
        const [hex = "", ending] = name.split(".");
        if (!/^[0-9a-f]{64}$/.test(hex)) continue;
        if (await this.#collectFile(`sha256:${hex}`, name, ending === "json", referenced)) gone.add(`sha256:${hex}`);
      }
    }
    const isThere = async (digest: string) => (await this.#label(digest)) !== null;
    await this.holdings.prune(isThere, new Date(this.#now().getTime() - this.#graceMs));
    return gone;
  }

  /** True if this was a blob's label and the blob is gone now. */
  async #collectFile(digest: string, name: string, isLabel: boolean, referenced: ReadonlySet<string>): Promise<boolean> {
    const label = await this.#label(digest);
    if (!isLabel) {
      if (label?.file !== name) await this.#sweep(this.#path(digest, name));
      return false;
    }
    if (referenced.has(digest) || !(await this.#sweep(this.#path(digest, name)))) return false;
    if (label !== null) await rm(this.#path(digest, label.file), { force: true });
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

  /** Whoever was first has stored it; a second copy adds nothing. */
  async #store(blob: Blob, temporary: string): Promise<Blob> {
    const { digest } = blob;
    if (await this.keep(digest)) return (await this.find(digest)) ?? blob;
    // A name of its own: what is swept away by its label is never what somebody else has just brought.
    const label: Label = { ...blob, file: `${hexOf(digest)}.${randomUUID()}.tar.gz` };
    const path = this.#path(digest, label.file);
    await mkdir(dirname(path), { recursive: true });
    await settle(temporary, path);
    const written = await this.#temporary();
    try {
      await writeFile(written, JSON.stringify(label), { mode: 0o600 });
      await this.#touch(written);
      while (!(await settleFirst(written, this.#labelPath(digest)))) {
        const known = await this.find(digest);
        if (known === null || !(await this.keep(digest))) continue;
        await rm(path, { force: true });
        return known;
      }
      return blob;
    } finally {
      await rm(written, { force: true });
    }
  }

  /** A damaged blob counts as missing, so that the next upload of the same content heals it. */
  async #disown(label: Label): Promise<void> {
    if ((await this.#label(label.digest))?.file === label.file) await rm(this.#labelPath(label.digest), { force: true });
  }

  /** Removes a file that is old enough; false if it is young or gone. */
  async #sweep(path: string): Promise<boolean> {
    const trash = await this.#temporary();
    try {
      if (await this.#isYoung(path)) return false;
      await rename(path, trash);
      // Someone may have used it between the look and the move.
      if (await this.#isYoung(trash)) {
        await settleFirst(trash, path);
        return false;
      }
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    } finally {
      await rm(trash, { force: true });
    }
  }

  async #isYoung(path: string): Promise<boolean> {
    return (await stat(path)).mtimeMs > this.#now().getTime() - this.#graceMs;
  }

  async #touch(path: string): Promise<void> {
    const now = this.#now();
    await utimes(path, now, now);
  }

  async #label(digest: string): Promise<Label | null> {
    try {
      return JSON.parse(await readFile(this.#labelPath(digest), "utf8")) as Label;
    } catch (error) {
      // An unreadable label is none: out of the way, so that the next upload of the same content heals it.
      if (error instanceof SyntaxError) await rm(this.#labelPath(digest), { force: true });
      else if (!isMissing(error)) throw error;
      return null;
    }
  }

  #labelPath(digest: string): string {
    return this.#path(digest, `${hexOf(digest)}.json`);
  }

  #path(digest: string, file: string): string {
    return join(this.#root, "sha256", hexOf(digest).slice(0, 2), file);
  }

  get #tmp(): string {
    return join(this.#root, "tmp");
  }

  async #temporary(): Promise<string> {
    await mkdir(this.#tmp, { recursive: true, mode: 0o700 });
    return join(this.#tmp, randomUUID());
  }
}

function missing(digest: string): PlatformError {
  return new PlatformError("bundle.not_found", `no bundle ${digest} is stored here; upload it first`, { details: { digest } });
}
