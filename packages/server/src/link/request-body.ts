import type { Readable } from "node:stream";
import { type JsonLimits, type LinkPath, messageOf, PlatformError, parseBoundedJson, ReadLimitExceeded } from "@aenv/contract";
import type { Holding } from "./held-bytes.ts";

/** What a process may send as the parameters of one request. */
export interface ParameterLimits {
  readonly maxBytes: number;
  /** Time until they are complete. */
  readonly timeoutMs: number;
}

const KIBIBYTE = 1_024;
const TIMEOUT_MS = 30_000;
/** Two paths of 4,096 characters, each of which JSON may write with six. */
const ORDINARY: ParameterLimits = { maxBytes: 64 * KIBIBYTE, timeoutMs: TIMEOUT_MS };
/** Larger than any command, which the system limits to about 2 MiB with its variables. */
const COMMAND: ParameterLimits = { maxBytes: 8 * KIBIBYTE ** 2, timeoutMs: TIMEOUT_MS };
/** 256 destinations. */
const EGRESS: ParameterLimits = { maxBytes: 256 * KIBIBYTE, timeoutMs: TIMEOUT_MS };
const LARGE: Partial<Record<LinkPath, ParameterLimits>> = { "/open": COMMAND, "/child/open": COMMAND, "/run": COMMAND, "/egress": EGRESS };

export function parameterLimits(path: LinkPath): ParameterLimits {
  return LARGE[path] ?? ORDINARY;
}

/** A command may have many arguments and variables. */
const JSON_LIMITS: JsonLimits = { maxDepth: 200, maxValues: 200_000 };
const NEWLINE = 10;

/**
 * Reads the first line of a request, its parameters as JSON. What follows can be read from the stream afterwards. `hold` counts the bytes while they
 * are incomplete; what it is given refuses the request.
 */
export function readParameters(
  stream: Readable,
  { maxBytes, timeoutMs }: ParameterLimits,
  hold: (refuse: (error: PlatformError) => void) => Holding,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const line = new GrowingBytes();
    const stop = () => {
      clearTimeout(timer);
      stream.off("readable", take).off("end", onEnd).off("close", onEnd);
      holding.release();
    };
    const fail = (error: PlatformError) => {
      stop();
      reject(error);
    };
    const onEnd = () => fail(new PlatformError("request.invalid", "the request ended before its parameters"));
    const onTimeout = () => fail(new PlatformError("request.too_slow", `the parameters did not arrive within ${timeoutMs} ms`));
    const finish = () => {
      stop();
      try {
        resolve(parsed(line.bytes()));
      } catch (error) {
        reject(error);
      }
    };
    const take = () => {
      for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read() as Buffer | null) {
        const end = chunk.indexOf(NEWLINE);
        const part = end < 0 ? chunk : chunk.subarray(0, end);
        if (line.length + part.length > maxBytes)
          return fail(new PlatformError("request.too_large", `the parameters are larger than ${maxBytes} bytes`));
        isRefused = false;
        holding.add(line.push(part));
        if (isRefused) return;
        if (end < 0) continue;
        if (end + 1 < chunk.length) stream.unshift(chunk.subarray(end + 1));
        return finish();
      }
    };
    let isRefused = false;
    const holding = hold((error) => {
      isRefused = true;
      fail(error);
    });
    const timer = setTimeout(onTimeout, timeoutMs);
    stream.on("readable", take).once("end", onEnd).once("close", onEnd);
  });
}

function parsed(line: Buffer): unknown {
  try {
    return parseBoundedJson(line.toString("utf8"), JSON_LIMITS);
  } catch (error) {
    const why = error instanceof ReadLimitExceeded ? "the parameters are not accepted" : "the parameters are not JSON";
    throw new PlatformError("request.invalid", `${why}: ${messageOf(error)}`);
  }
}

/** Bytes in one buffer of its own: a chunk of a byte keeps the whole buffer of the socket that it was read with. */
class GrowingBytes {
  #buffer = Buffer.alloc(0);
  length = 0;

  /** Returns by how much more memory is held. */
  push(part: Uint8Array): number {
    const before = this.#buffer.length;
    const length = this.length + part.length;
    if (length > before) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * before, 1_024));
      larger.set(this.bytes());
      this.#buffer = larger;
    }
    this.#buffer.set(part, this.length);
    this.length = length;
    return this.#buffer.length - before;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }
}
