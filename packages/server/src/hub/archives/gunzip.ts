import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { isPlatformError, PlatformError } from "@aenv/contract";

export interface ArchiveLimits {
  readonly maxUnpackedBytes: number;
  /** The highest compression ratio. Normal code and data stay far below it; zip bombs exceed it. */
  readonly maxRatio: number;
  /** The ratio is not checked below this size: short archives of zeros are harmless. */
  readonly freeBytes: number;
}

export const archiveLimits: ArchiveLimits = { maxUnpackedBytes: 2 ** 30, maxRatio: 200, freeBytes: 32 * 2 ** 20 };

export type Bytes = Readable | AsyncIterable<Uint8Array>;

export interface GunzipOptions {
  readonly limits: ArchiveLimits;
  readonly signal?: AbortSignal;
  /** Called with each compressed chunk. */
  readonly onPacked?: (chunk: Uint8Array) => Promise<void>;
}

/**
 * Decompresses a stream and passes the output to `use`, which reads all of it. It stops as soon as a limit is exceeded, and
 * never buffers more than a few chunks. The source is left open on an error, so that an error response can be sent.
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
  // On an error the source is no longer read or waited for: it may never send another chunk.
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

/** The chunks of a source until the signal is aborted, even while the source is silent. */
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
      // One promise per chunk: racing each chunk against one shared promise would retain every chunk until the end.
      const next = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        stop = () => reject(signal.reason);
        chunks.next().then(resolve, reject);
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Not awaited: a source that waits for its next chunk returns only when that arrives.
    if (signal.aborted) chunks.return?.().catch(() => {});
    else await chunks.return?.();
  }
}

function explain(error: unknown, signal: AbortSignal | undefined): unknown {
  if (isPlatformError(error)) return error;
  if (signal?.aborted) {
    const { reason } = signal;
    return isPlatformError(reason) ? reason : new PlatformError("request.cancelled", "the transfer was cancelled", { cause: error });
  }
  const code = (error as NodeJS.ErrnoException | null)?.code ?? "";
  if (!code.startsWith("Z_")) return error;
  return new PlatformError("bundle.invalid", "the bundle is not a gzip archive, is cut short, or is damaged", { cause: error });
}

function tooMuch(what: string): PlatformError {
  return new PlatformError("bundle.invalid", `the bundle ${what}; it is not unpacked any further`);
}
