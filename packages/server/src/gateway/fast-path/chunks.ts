const CR = 13;
const LF = 10;
/** Limit for a line with a chunk's size, and for a trailer. */
const MAX_LINE = 8 * 1024;

/** Finds the end of a chunked body. */
export class ChunkFollower {
  #state: "size" | "data" | "after data" | "trailer" | "over" = "size";
  #line = "";
  #left = 0;

  get isOver(): boolean {
    return this.#state === "over";
  }

  get isBetweenChunks(): boolean {
    return this.#state === "size" && this.#line === "";
  }

  /** How many of these bytes belong to the body. Throws when they are not chunks. */
  follow(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && this.#state !== "over") {
      if (this.#state === "data") {
        const taken = Math.min(this.#left, bytes.length - at);
        at += taken;
        this.#left -= taken;
        if (this.#left === 0) this.#state = "after data";
      } else {
        this.#take(bytes[at++] as number);
      }
    }
    return at;
  }

  #take(byte: number): void {
    if (byte !== LF) {
      if (this.#line.length >= MAX_LINE || (this.#line.endsWith("\r") && byte !== CR))
        throw new Error("the sandbox's response has a broken chunk");
      this.#line += String.fromCharCode(byte);
      return;
    }
    const line = this.#line;
    this.#line = "";
    if (!line.endsWith("\r")) throw new Error("the sandbox's response has a broken chunk");
    if (this.#state === "size") this.#begin(line.slice(0, -1));
    else if (this.#state === "trailer") this.#state = line === "\r" ? "over" : "trailer";
    else if (line === "\r") this.#state = "size";
    else throw new Error("the sandbox's response has a chunk that is longer than it says");
  }

  #begin(line: string): void {
    const size = /^([0-9a-fA-F]{1,8})(?:[ \t]*;.*)?$/.exec(line)?.[1];
    if (size === undefined) throw new Error(`the sandbox's response has a chunk of size '${line.slice(0, 20)}'`);
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? "trailer" : "data";
  }
}
