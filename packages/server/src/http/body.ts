import type { Readable } from "node:stream";
import { PlatformError } from "@aenv/contract";

export interface BodyLimits {
  readonly maxBytes: number;
  /** Timeout for a small body; a larger one gets more time as it arrives. */
  readonly timeoutMs: number;
}

/** A body that arrives faster than this never times out. */
const BYTES_PER_MS = 64;

/** Reads a whole body. Throws as soon as it is too large or too slow; the rest stays unread. */
export function readBody(source: Readable, { maxBytes, timeoutMs }: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const began = performance.now();
    let received = 0;
    const settle = (finish: () => void) => {
      clearTimeout(timer);
      source.off("data", onData).off("end", onEnd).off("error", onClose).off("close", onClose);
      finish();
    };
    const fail = (error: PlatformError) => {
      source.pause();
      settle(() => reject(error));
    };
    const onData = (chunk: Buffer) => {
      received += chunk.length;
      if (received > maxBytes) return fail(tooLarge(maxBytes));
      chunks.push(chunk);
    };
    const onEnd = () => settle(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    const onClose = () => fail(new PlatformError("request.cancelled", "the client closed the connection before its request was complete"));
    const onTimeout = () => {
      const leftMs = timeoutMs + received / BYTES_PER_MS - (performance.now() - began);
      if (leftMs <= 0) return fail(tooSlow(received, timeoutMs));
      timer = setTimeout(onTimeout, leftMs);
    };
    let timer = setTimeout(onTimeout, timeoutMs);
    source.on("data", onData).on("end", onEnd).on("error", onClose).on("close", onClose);
  });
}

/** Refuses a body by its content-length. A body without one is measured while it is read. */
export function checkContentLength(contentLength: string | undefined, maxBytes: number): void {
  if (contentLength !== undefined && Number(contentLength) > maxBytes) throw tooLarge(maxBytes);
}

function tooLarge(maxBytes: number): PlatformError {
  return new PlatformError("request.too_large", `the request body is larger than ${maxBytes} bytes, the limit of this route`, {
    details: { maxBytes },
  });
}

function tooSlow(received: number, timeoutMs: number): PlatformError {
  return new PlatformError("request.too_slow", `only ${received} bytes of the request body arrived within ${timeoutMs} ms; send it faster`);
}
