import { StringDecoder } from "node:string_decoder";
import { ReadLimitExceeded } from "@aenv/contract";

const HEADER_BYTES = 8;
const MAX_LINE = 64 * 1024;
/** The daemon cuts lines into parts of 16 KiB. */
const MAX_FRAME = 16 * 1024 ** 2;

/**
 * Lines of a container's log. The daemon sends frames: one byte for the output (1 or 2), three zeros, four bytes of length, and the text.
 * Frames and lines may be cut anywhere; a line that is too long is split into pieces.
 */
export class LogFrames {
  readonly #outputs = new Map<number, LineSplitter>();
  #rest: Buffer = Buffer.alloc(0);

  push(data: Uint8Array): string[] {
    const lines: string[] = [];
    let rest = this.#rest.length === 0 ? Buffer.from(data) : Buffer.concat([this.#rest, data]);
    while (rest.length >= HEADER_BYTES) {
      const length = rest.readUInt32BE(4);
      if (length > MAX_FRAME) throw new ReadLimitExceeded("bytes", MAX_FRAME);
      const end = HEADER_BYTES + length;
      if (rest.length < end) break;
      lines.push(...this.#output(rest[0] ?? 1).push(rest.subarray(HEADER_BYTES, end)));
      rest = rest.subarray(end);
    }
    this.#rest = rest;
    return lines;
  }

  /** Lines without an end, once there is no more data. */
  finish(): string[] {
    return [...this.#outputs.values()].flatMap((output) => output.finish());
  }

  #output(number: number): LineSplitter {
    const known = this.#outputs.get(number);
    if (known !== undefined) return known;
    const made = new LineSplitter();
    this.#outputs.set(number, made);
    return made;
  }
}

class LineSplitter {
  readonly #decoder = new StringDecoder("utf8");
  #partial = "";

  push(data: Buffer): string[] {
    const lines = (this.#partial + this.#decoder.write(data)).split("\n");
    this.#partial = lines.pop() ?? "";
    if (this.#partial.length > MAX_LINE) {
      lines.push(this.#partial);
      this.#partial = "";
    }
    return lines;
  }

  finish(): string[] {
    const last = this.#partial + this.#decoder.end();
    this.#partial = "";
    return last === "" ? [] : [last];
  }
}
