import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { messageOf, PlatformError } from "@aenv/contract";
import { hexOf } from "../hub/archives/digest.ts";
import { isMissing, listNames, moveIfAbsent } from "../hub/archives/files.ts";

/** A received file that has no name yet. */
export interface Arrival {
  readonly digest: string;
  readonly bytes: number;
  readonly path: string;
}

export interface SnapshotContentOptions {
  /** All servers that share a store share this folder. */
  readonly folder: string;
  readonly serverId: string;
  /** The digests that rows list. */
  readonly referenced: () => Promise<ReadonlySet<string>>;
}

/** Memory compresses well even so, and a faster disk than this level is rare. */
const LEVEL = 1;
const PART = "part";
const EVICTED = "evicted";

/**
 * The content of snapshots: compressed files by digest. Nothing is locked. To keep a file, a server lists it in a row and then
 * checks that it is there; to remove one, it moves the file away and then reads what is listed. So at least one of them sees the other.
 */
export class SnapshotContent {
  readonly #options: SnapshotContentOptions;

  constructor(options: SnapshotContentOptions) {
    this.#options = options;
  }

  /** Stores bytes as they come. The caller lists the digest in a row and calls `keep`; what is left otherwise is removed by `collect`. */
  async receive(source: Readable, onBytes: (bytes: number) => void, signal: AbortSignal): Promise<Arrival> {
    const path = await this.#temporary(PART);
    const hash = createHash("sha256");
    let bytes = 0;
    const hashed = passing((chunk) => void hash.update(chunk));
    const counted = passing((chunk) => {
      bytes += chunk.length;
      onBytes(chunk.length);
    });
    const compressed = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: LEVEL } });
    try {
      await pipeline(source, hashed, compressed, counted, createWriteStream(path, { flags: "wx", mode: 0o600 }), { signal });
      return { digest: `sha256:${hash.digest("hex")}`, bytes, path };
    } catch (error) {
      await rm(path, { force: true });
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Gives a received file its name, if no other one has it. Its digest is listed in a row. */
  async keep({ digest, path }: Arrival): Promise<void> {
    const target = this.#pathOf(digest);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    if (!(await moveIfAbsent(path, target))) await rm(path, { force: true });
  }

  async discard({ path }: Arrival): Promise<void> {
    await rm(path, { force: true });
  }

  async has(digest: string): Promise<boolean> {
    return stat(this.#pathOf(digest)).then(
      () => true,
      () => false,
    );
  }

  /** If the file is damaged, the stream fails before its end. */
  async open(digest: string): Promise<Readable> {
    if (!(await this.has(digest)))
      throw new PlatformError(
        "snapshot.not_found",
        `the content ${digest} of the snapshot is not stored any more; take the snapshot again`,
      );
    return Readable.from(this.#read(digest), { objectMode: false });
  }

  async *#read(digest: string): AsyncGenerator<Buffer> {
    const hash = createHash("sha256");
    const [stored, plain] = [createReadStream(this.#pathOf(digest)), createZstdDecompress()];
    pipeline(stored, plain).catch(() => {}); // thrown by the loop
    try {
      for await (const chunk of plain) {
        hash.update(chunk);
        yield chunk;
      }
    } catch (error) {
      throw damaged(digest, messageOf(error));
    } finally {
      stored.destroy();
    }
    if (`sha256:${hash.digest("hex")}` !== digest) throw damaged(digest, "its bytes have changed");
  }

  /** Removes the files with these digests, unless a row lists them. */
  async remove(digests: Iterable<string>): Promise<void> {
    const referenced = await this.#options.referenced();
    for (const digest of new Set(digests)) if (!referenced.has(digest)) await this.#evict(hexOf(digest));
  }

  /** Removes all files that no row lists, and what servers that do not live any more left unfinished. */
  async collect(livingServers: () => Promise<ReadonlySet<string>>): Promise<void> {
    await this.remove(await this.#digests());
    const unfinished = await listNames(this.#tmp);
    if (unfinished.length === 0) return;
    // Read after the list: a file of a server that has started since is not in the list.
    const living = await livingServers();
    for (const name of unfinished) {
      const [server = "", kind, hex = ""] = name.split(".");
      if (living.has(server)) continue;
      if (kind === EVICTED) await this.#decide(hex, join(this.#tmp, name));
      else await rm(join(this.#tmp, name), { force: true });
    }
  }

  async #digests(): Promise<string[]> {
    const root = join(this.#options.folder, "sha256");
    const found: string[] = [];
    for (const prefix of await listNames(root))
      for (const name of await listNames(join(root, prefix))) if (/^[0-9a-f]{64}$/.test(name)) found.push(`sha256:${name}`);
    return found;
  }

  async #evict(hex: string): Promise<void> {
    const evicted = await this.#temporary(`${EVICTED}.${hex}`);
    try {
      await rename(this.#pathOf(`sha256:${hex}`), evicted);
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    await this.#decide(hex, evicted);
  }

  /** Deletes a file that was moved away, or moves it back if a row lists it now. */
  async #decide(hex: string, path: string): Promise<void> {
    const digest = `sha256:${hex}`;
    if ((await this.#options.referenced()).has(digest)) await moveIfAbsent(path, this.#pathOf(digest));
    await rm(path, { force: true });
  }

  #pathOf(digest: string): string {
    const hex = hexOf(digest);
    return join(this.#options.folder, "sha256", hex.slice(0, 2), hex);
  }

  get #tmp(): string {
    return join(this.#options.folder, "tmp");
  }

  async #temporary(kind: string): Promise<string> {
    await mkdir(this.#tmp, { recursive: true, mode: 0o700 });
    return join(this.#tmp, `${this.#options.serverId}.${kind}.${randomUUID()}`);
  }
}

function passing(onChunk: (chunk: Buffer) => void): Transform {
  return new Transform({
    transform: (chunk: Buffer, _, done) => {
      try {
        onChunk(chunk);
        done(null, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

function damaged(digest: string, why: string): PlatformError {
  return new PlatformError("snapshot.invalid", `the content ${digest} of the snapshot is damaged on disk: ${why}; take the snapshot again`);
}
