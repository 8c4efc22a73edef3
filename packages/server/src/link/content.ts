import { constants, type ServerHttp2Stream } from "node:http2";
import { PlatformError } from "@aenv/contract";
import { writePart } from "./frames.ts";

interface Content {
  readonly stream: ServerHttp2Stream;
  readonly signal: AbortSignal;
}

/**
 * The bytes after the parameters. A request that is broken off, or of which nothing more arrives for `idleMs`, is an error and not the end of the
 * content.
 */
export async function* receivedContent({ stream, signal }: Content, idleMs: number): AsyncGenerator<Uint8Array> {
  const parts = stream.iterator({ destroyOnReturn: false });
  for (let next = await within(idleMs, parts.next()); next.done !== true; next = await within(idleMs, parts.next()))
    yield next.value as Uint8Array;
  if (stream.aborted || signal.aborted) throw new PlatformError("request.cancelled", "the environment cancelled its request");
}

/** Sends the content of a file as the answer. Throws if the environment does not read it. */
export async function sendContent(stream: ServerHttp2Stream, content: AsyncIterable<Uint8Array>, idleMs: number): Promise<void> {
  stream.respond({ ":status": 200, "content-type": "application/octet-stream" });
  for await (const part of content) {
    if (stream.destroyed) return;
    await writePart(stream, part, idleMs);
  }
}

/** Time for the end of a request that was answered before its end. */
const END_MS = 10_000;

/** Ends an answer. A request that goes on after it, or an answer that is not read, does not stay open. */
export function endAnswer(stream: ServerHttp2Stream, unreadMs: number): void {
  if (stream.destroyed) return;
  const close = () => stream.close(stream.writableFinished ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL);
  let timer = setTimeout(close, unreadMs);
  stream.once("finish", () => {
    clearTimeout(timer);
    timer = setTimeout(close, END_MS);
  });
  stream.once("close", () => clearTimeout(timer));
  stream.end();
}

async function within<T>(idleMs: number, next: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const message = `nothing more of the content arrived within ${idleMs} ms`;
  const timer = setTimeout(() => late.reject(new PlatformError("request.too_slow", message)), idleMs);
  try {
    return await Promise.race([next, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
