import { tagSession } from "../../services/sessions.ts";
import { isEndToEnd, SESSION } from "../headers.ts";
import { ChunkFollower } from "./chunks.ts";
import { onlyValue, type ResponseHead, readResponseHead } from "./head.ts";

/** How a body's end is found. */
type Framing =
  | { readonly by: "length"; left: number }
  | { readonly by: "chunks"; readonly chunks: ChunkFollower }
  | { readonly by: "close" };

const NOTHING = Buffer.alloc(0);

/** Turns what a sandbox says on its line into what the client is told, without looking into it. */
export class ResponseReader {
  readonly #sessionTag: string | undefined;
  #pending: Buffer | null = null;
  #framing: Framing | null = null;
  #sandboxKeepsMs = 0;
  #status = 0;
  #isOver = false;
  #isClean = true;

  /** The tag is put before the id of an MCP session that the answer names. */
  constructor(sessionTag?: string) {
    this.#sessionTag = sessionTag;
  }

  /** 0 until the client has been told some of the answer. */
  get status(): number {
    return this.#status;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The answer lasts until its connection ends, so the client's must end too. */
  get endsConnection(): boolean {
    return this.#framing?.by === "close";
  }

  /** How long the sandbox keeps the line for the next call; 0 if it cannot be used again. */
  get sandboxKeepsMs(): number {
    return this.#isOver && this.#isClean ? this.#sandboxKeepsMs : 0;
  }

  /** What of it the client is to be told now. Throws when the sandbox does not speak HTTP. */
  read(bytes: Buffer, connection: string): Buffer {
    if (this.#framing !== null) return this.#body(bytes);
    const all = this.#pending === null ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = null;
    const head = readResponseHead(all);
    if (head === null) {
      this.#pending = all;
      return NOTHING;
    }
    // None of these was asked for, and what follows them is not an answer.
    if (head.status === 100 || head.status === 101) throw new Error(`the sandbox answered with ${head.status}, which was not asked for`);
    // A hint, not the answer yet.
    if (head.status < 200) return head.bodyAt < all.length ? this.read(all.subarray(head.bodyAt), connection) : NOTHING;
    this.#begin(head);
    const body = this.#body(all.subarray(head.bodyAt));
    const text = headFor(head, this.endsConnection ? "close" : connection, this.#sessionTag);
    const told = Buffer.allocUnsafe(text.length + body.length);
    told.write(text, 0, "latin1");
    told.set(body, text.length);
    // Only now: as long as the client has been told nothing, it can still be told what went wrong.
    this.#status = head.status;
    return told;
  }

  /** The sandbox has hung up. True if that was the proper end of its answer. */
  hangUp(): boolean {
    if (this.#framing?.by === "close") this.#isOver = true;
    return this.#isOver;
  }

  #begin({ status, headers }: ResponseHead): void {
    this.#sandboxKeepsMs = keptMs(headers);
    const coding = onlyValue(headers, "transfer-encoding");
    const length = onlyValue(headers, "content-length");
    if (status === 204 || status === 304) {
      this.#framing = { by: "length", left: 0 };
      // A body that must not be there may still come, and would be taken for the next call's answer.
      if (coding !== undefined || (length !== undefined && length !== "0")) this.#isClean = false;
    } else if (coding !== undefined) {
      if (coding.toLowerCase() !== "chunked" || length !== undefined)
        throw new Error("the sandbox's answer does not say plainly how long it is");
      this.#framing = { by: "chunks", chunks: new ChunkFollower() };
    } else if (length === undefined) this.#framing = { by: "close" };
    else if (/^\d{1,15}$/.test(length)) this.#framing = { by: "length", left: Number(length) };
    else throw new Error(`the sandbox's answer says that it is '${length}' bytes long`);
  }

  #body(bytes: Buffer): Buffer {
    const framing = this.#framing;
    if (framing === null || framing.by === "close") return bytes;
    let own: number;
    if (framing.by === "length") {
      own = Math.min(framing.left, bytes.length);
      framing.left -= own;
      this.#isOver = framing.left === 0;
    } else {
      own = framing.chunks.follow(bytes);
      this.#isOver = framing.chunks.isOver;
    }
    // Nothing was asked that could be answered by more.
    if (own < bytes.length) this.#isClean = false;
    return own < bytes.length ? bytes.subarray(0, own) : bytes;
  }
}

function headFor({ status, statusLine, headers }: ResponseHead, connection: string, sessionTag: string | undefined): string {
  let text = `${statusLine}\r\n`;
  for (const [name, value] of headers) {
    if (!isTold(name, status)) continue;
    text += `${name}: ${sessionTag !== undefined && name === SESSION ? tagSession(sessionTag, value) : value}\r\n`;
  }
  return `${text}connection: ${connection}\r\n\r\n`;
}

/** An answer without a body does not say how one would be sent; only 304 may say how long it would be. */
function isTold(name: string, status: number): boolean {
  if (name === "transfer-encoding") return status !== 204 && status !== 304;
  return name === "content-length" ? status !== 204 : isEndToEnd(name);
}

/** What a server does that does not say: Node's default is 5 s. */
const UNSAID_MS = 5_000;
/** A line that the sandbox is about to close is not used any more. */
const MARGIN_MS = 1_000;

function keptMs(headers: ResponseHead["headers"]): number {
  if (/(^|[,\s])close($|[,\s])/i.test(onlyValue(headers, "connection") ?? "")) return 0;
  const seconds = /timeout=(\d{1,6})/.exec(onlyValue(headers, "keep-alive") ?? "")?.[1];
  return Math.max((seconds === undefined ? UNSAID_MS : Number(seconds) * 1_000) - MARGIN_MS, 0);
}
