// No schemas here: this file is loaded by every environment.
//
// The server connects to the process of an environment and upgrades the connection. Over it, the process sends HTTP/2 requests to the
// server: it opens sandboxes for its instances, and runs commands and accesses files in them. The body of a request is one line of
// JSON, its parameters, and then bytes.

import { ReadLimitExceeded } from "./bounded-read.ts";

/** The name of the protocol in the `Upgrade` header. */
export const LINK_PROTOCOL = "aenv-platform-1";

/**
 * The protocol of a client that listens inside a sandbox. The answer to the upgrade names the port; after it, the server is an HTTP/2
 * client and opens a stream with CONNECT for each connection.
 */
export const LISTEN_PROTOCOL = "aenv-listen-1";
/** The header with the port. */
export const LISTEN_PORT = "aenv-port";

/** The header that names the instance for which a request is made. */
export const LINK_INSTANCE = "aenv-instance";

/**
 * The variable that says whether the server of an environment takes connections from programs of its own sandbox. `refuse` is set by
 * engines that connect from outside of the sandbox. One that connects from inside sets `key:` and the SHA-256 digest of a key in hex: the
 * server then takes only connections that begin with the key. `allow` is set by operators.
 */
export const OWN_CONNECTIONS_VARIABLE = "AENV_OWN_CONNECTIONS";
export const OWN_CONNECTIONS_KEY = "key:";

/**
 * The label of images whose server knows `key:` of that variable. Its value is the file of the server, as the command of the image names
 * it. Images made from such an image have the label too, and may run another program.
 */
export const CALLERS_LABEL = "aenv.checks-callers";

/** What a frame holds: JSON of an event, or output. */
const frameChannels = { event: 0, stdout: 1, stderr: 2 } as const;
export type FrameChannel = keyof typeof frameChannels;

const HEAD_BYTES = 5;
/** An event is an answer about a process, in JSON. */
const MAX_EVENT_BYTES = 1_024 ** 2;
const names = Object.keys(frameChannels) as readonly FrameChannel[];

/** The head of a frame, which its data follows: the channel in one byte, the length in four. */
export function frameHead(channel: FrameChannel, length: number): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES);
  head[0] = frameChannels[channel];
  new DataView(head.buffer).setUint32(1, length);
  return head;
}

/** Finds the frames in a stream of bytes. The data of a frame is returned as it arrives, but that of an event as a whole. */
export class FrameReader {
  #rest: Uint8Array = new Uint8Array(0);
  #channel: FrameChannel = "event";
  #left = 0;

  *push(bytes: Uint8Array): Generator<{ readonly channel: FrameChannel; readonly data: Uint8Array }> {
    let data = this.#rest.length === 0 ? bytes : joined(this.#rest, bytes);
    for (;;) {
      if (this.#left === 0) {
        if (data.length < HEAD_BYTES) break;
        this.#channel = names[data[0] as number] ?? unknownChannel(data[0] as number);
        this.#left = new DataView(data.buffer, data.byteOffset).getUint32(1);
        if (this.#channel === "event" && this.#left > MAX_EVENT_BYTES) throw new ReadLimitExceeded("bytes", MAX_EVENT_BYTES);
        data = data.subarray(HEAD_BYTES);
        if (this.#left === 0) continue;
      }
      if (data.length === 0 || (this.#channel === "event" && data.length < this.#left)) break;
      const part = data.subarray(0, this.#left);
      this.#left -= part.length;
      data = data.subarray(part.length);
      yield { channel: this.#channel, data: part };
    }
    this.#rest = data;
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

function unknownChannel(number: number): never {
  throw new Error(`a frame has the unknown channel ${number}`);
}
