import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { isPlatformError, PlatformError } from "@aenv/contract";

export interface ArchiveLimits {
  readonly maxUnpackedBytes: number;
  /** How many bytes one byte may become. Honest code and data stay far below; a bomb is what lives above. */
  readonly maxRatio: number;
  /** So much may always come out: short archives of zeros are harmless. */
  readonly freeBytes: number;
}

export const archiveLimits: ArchiveLimits = { maxUnpackedBytes: 2 ** 30, maxRatio: 200, freeBytes: 32 * 2 ** 20 };

export type Bytes = Readable | AsyncIterable<Uint8Array>;

export interface GunzipOptions {
  readonly limits: ArchiveLimits;
  readonly signal?: AbortSignal;
  /** Sees the compressed bytes as they pass. */
  readonly onPacked?: (chunk: Uint8Array) => Promise<void>;
}

/**
 * Decompresses while it streams and gives what comes out to `use`, which reads all of it. It stops as soon as too much
 * comes out, long before a bomb has gone off, and never holds more than a few chunks. The source is left open on an
 * error, so that its sender can be told.
 */
export async function gunzip<T>(
  source: Bytes,
  { limits, signal, onPacked }: GunzipOptions,
  use: (unpacked: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const stopped = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  let [packed, unpacked] = [0, 0];
  let failure: unknown;
  const fail = (error: unknown): never => {
    failure ??= error;
    throw error;
  };
  const read = async function* () {
    for await (const chunk of until(stopped, source)) {
      packed += chunk.length;
      await onPacked?.(chunk);
      yield chunk;
    }
  };
  const guard = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      unpacked += chunk.length;
      if (unpacked > limits.maxUnpackedBytes) fail(tooMuch(`unpacks to more than ${limits.maxUnpackedBytes} bytes`));
      if (unpacked > limits.freeBytes && unpacked > packed * limits.maxRatio) {
        fail(tooMuch(`unpacks to more than ${limits.maxRatio} times its size`));
      }
      yield chunk;
    }
  };
  const unzip = createGunzip({ chunkSize: 64 * 1024 });
  // Whatever goes wrong ends here. The source may be silent for good: nobody waits for it any longer, nor reads on.
  unzip.once("error", (error) => stop.abort(error));
  let result: T | undefined;
  try {
    await pipeline(read, unzip, guard, async (chunks: AsyncIterable<Uint8Array>) => {
      result = await use(chunks).catch(fail);
    });
  } catch (error) {
    throw explain(failure ?? error, signal);
  }
  return result as T;
}

/** The chunks of a source until the signal says stop, even if the source does not say anything. */
async function* until(signal: AbortSignal, source: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks: AsyncIterator<Uint8Array> = (source instanceof Readable ? source.iterator({ destroyOnReturn: false }) : source)[
    Symbol.asyncIterator
  ]();
  let stop = () => {};
  const onAbort = () => stop();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      // A promise of its own for each chunk: one for all, raced against each, would hold every chunk until the end.
      const next = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        stop = () => reject(signal.reason);
        chunks.next().then(resolve, reject);
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Not awaited: a source that waits for its next chunk answers only then.
    if (signal.aborted) chunks.return?.().catch(() => {});
    else await chunks.return?.();
  }
}

function explain(error: unknown, signal: AbortSignal | undefined): unknown {
  if (isPlatformError(error)) return error;
  if (signal?.aborted) {
    const { reason } = signal;
    return isPlatformError(reason) ? reason : new PlatformError("request.cancelled", "the transfer was given up", { cause: error });
  }
  const code = (error as NodeJS.ErrnoException | null)?.code ?? "";
  if (!code.startsWith("Z_")) return error;
  return new PlatformError("bundle.invalid", "the bundle is not a gzip archive, is cut short, or is damaged", { cause: error });
}

function tooMuch(what: string): PlatformError {
  return new PlatformError("bundle.invalid", `the bundle ${what}; it is not unpacked any further`);
}
