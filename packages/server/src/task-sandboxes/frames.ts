import { once } from "node:events";
import type { Writable } from "node:stream";
import { type CommandEvent, type FrameChannel, frameHead } from "@aenv/contract";

/** Writes a frame; resolves when the reader has taken enough that more may be written. */
export async function writeFrame(to: Writable, channel: FrameChannel, data: Uint8Array): Promise<void> {
  to.write(frameHead(channel, data.length));
  if (to.write(data) || to.destroyed) return;
  await Promise.race([once(to, "drain"), once(to, "close")]);
}

export function writeEvent(to: Writable, event: CommandEvent): Promise<void> {
  return writeFrame(to, "event", Buffer.from(JSON.stringify(event)));
}
