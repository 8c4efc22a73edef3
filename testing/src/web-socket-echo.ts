import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

// The part of RFC 6455 that tests need: a server that echoes every message, answers pings and handles close frames.

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Accepts an upgrade and echoes text and binary messages of up to 1 GiB: `server.on("upgrade", echoWebSocket)`. */
export function echoWebSocket(request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${MAGIC}`).digest("base64");
  const protocol = request.headers["sec-websocket-protocol"]?.split(",")[0]?.trim();
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
  if (protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  let pending = head;
  const take = (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    for (let frame = readFrame(pending); frame !== null; frame = readFrame(pending)) {
      pending = pending.subarray(frame.end);
      const isClose = frame.opcode === 8;
      const isGoingOn = socket.write(frameOf(frame.opcode === 9 ? 10 : frame.opcode, frame.isLast, frame.payload));
      if (isClose) return void socket.end();
      // Backpressure: no faster than the client reads.
      if (isGoingOn || socket.isPaused()) continue;
      socket.pause();
      socket.once("drain", () => socket.resume());
    }
  };
  socket.on("error", () => {}).on("end", () => socket.end());
  socket.on("data", take);
  take(Buffer.alloc(0));
}

interface Frame {
  readonly opcode: number;
  readonly isLast: boolean;
  readonly payload: Buffer;
  readonly end: number;
}

/** A client's frame, which is always masked; null while it is incomplete. */
function readFrame(bytes: Buffer): Frame | null {
  if (bytes.length < 2) return null;
  const first = bytes.readUInt8(0);
  const short = bytes.readUInt8(1) & 0x7f;
  const maskAt = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < maskAt + 4) return null;
  const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  const end = maskAt + 4 + length;
  if (bytes.length < end) return null;
  const payload = Buffer.from(bytes.subarray(maskAt + 4, end));
  for (let at = 0; at < payload.length; at++) payload[at] = (payload[at] as number) ^ (bytes[maskAt + (at & 3)] as number);
  return { opcode: first & 0x0f, isLast: (first & 0x80) !== 0, payload, end };
}

function frameOf(opcode: number, isLast: boolean, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head.writeUInt8(opcode | (isLast ? 0x80 : 0), 0);
  head.writeUInt8(length < 126 ? length : length < 65_536 ? 126 : 127, 1);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}
