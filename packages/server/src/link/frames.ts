import { once } from "node:events";
import type { Writable } from "node:stream";
import { type CommandEvent, type FrameChannel, frameHead, PlatformError } from "@aenv/contract";

/** A larger piece of data is written in parts, so that a reader that stops keeps little of it in the buffers of the connection. */
const PART_BYTES = 64 * 1_024;

/** Writes bytes; resolves when the reader has taken enough that more may be written. Closes the stream if it takes nothing for `unreadMs`. */
export async function writePart(to: Writable, data: Uint8Array, unreadMs: number): Promise<void> {
  for (let at = 0; at < data.length; at += PART_BYTES) {
    if (to.destroyed) return;
    if (!to.write(data.subarray(at, at + PART_BYTES))) await drained(to, unreadMs);
  }
}

/** The same for a frame. */
export async function writeFrame(to: Writable, channel: FrameChannel, data: Uint8Array, unreadMs: number): Promise<void> {
  to.write(frameHead(channel, data.length));
  await writePart(to, data, unreadMs);
}

export function writeEvent(to: Writable, event: CommandEvent, unreadMs: number): Promise<void> {
  return writeFrame(to, "event", Buffer.from(JSON.stringify(event)), unreadMs);
}

async function drained(to: Writable, unreadMs: number): Promise<void> {
  if (to.destroyed || !to.writableNeedDrain) return;
  const over = new AbortController();
  const { signal } = over;
  const message = `the environment has read nothing of the answer for ${unreadMs} ms`;
  // Nothing can follow a part of a frame.
  const timer = setTimeout(() => to.destroy(new PlatformError("request.timeout", message)), unreadMs);
  try {
    await Promise.race([once(to, "drain", { signal }), once(to, "close", { signal })]);
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
