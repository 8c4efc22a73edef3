import { tagSession } from "../../services/sessions.ts";
import { isEndToEnd, SESSION } from "../headers.ts";
import { EventFollower, isEventStream } from "../last-event.ts";
import { ChunkFollower } from "./chunks.ts";
import { onlyValue, type ResponseHead, readResponseHead } from "./head.ts";

/** How the end of a body is found. */
type Framing = { readonly by: "length"; readonly length: number } | { readonly by: "chunks" } | { readonly by: "close" };

/** A response's head, and what follows from it. */
interface PreparedHead {
  readonly head: ResponseHead;
  readonly framing: Framing;
  /** False if the sandbox's connection cannot be used again. */
  readonly isClean: boolean;
  readonly sandboxKeepsMs: number;
  readonly connection: string;
  readonly sessionTag: string | undefined;
  readonly isEventStream: boolean;
  /** The head as the client gets it. */
  readonly forClient: string;
}

const NOTHING = Buffer.alloc(0);

/** Turns the bytes of a sandbox's response into those for the client, one response after the other. Bodies are not looked into. */
export class ResponseReader {
  #sessionTag: string | undefined;
  #pending: Buffer | null = null;
  #framing: Framing | null = null;
  #left = 0;
  #chunks: ChunkFollower | null = null;
  #events: EventFollower | null = null;
  #sandboxKeepsMs = 0;
  #status = 0;
  #isOver = false;
  #isClean = true;
  /** Sandboxes send the same head with many responses, so the last one is not parsed again. */
  #last: PreparedHead | null = null;

  /** The next response begins. The tag is put before the id of an MCP session in its head. */
  start(sessionTag: string | undefined): void {
    this.#sessionTag = sessionTag;
    this.#pending = null;
    this.#framing = null;
    this.#chunks = null;
    this.#events = null;
    this.#status = 0;
    this.#isOver = false;
    this.#isClean = true;
  }

  /** 0 until some of the response was returned for the client. */
  get status(): number {
    return this.#status;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** True if one more event, in a chunk of its own, can follow what was returned for the client. */
  get isBetweenEvents(): boolean {
    return this.#chunks?.isBetweenChunks === true && this.#events?.isBetweenChunkedEvents === true;
  }

  /** True if the response lasts until its connection closes, so the client's connection must be closed too. */
  get endsConnection(): boolean {
    return this.#framing?.by === "close";
  }

  /** How long the sandbox keeps the connection for the next call; 0 if it cannot be used again. */
  get sandboxKeepsMs(): number {
    return this.#isOver && this.#isClean ? this.#sandboxKeepsMs : 0;
  }

  /** The bytes to send to the client now, in a buffer of their own. Throws when the sandbox's response is not HTTP. */
  read(bytes: Buffer, connection: string): Buffer {
    if (this.#framing !== null) return Buffer.from(this.#body(bytes));
    const all = this.#pending === null ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = null;
    const last = this.#last;
    const isSame = last !== null && last.connection === connection && last.sessionTag === this.#sessionTag && startsWith(all, last.head);
    const head = isSame ? last.head : readResponseHead(all);
    if (head === null) {
      this.#pending = Buffer.from(all);
      return NOTHING;
    }
    // The gateway asked for neither, and the bytes that follow are not a response.
    if (head.status === 100 || head.status === 101) throw new Error(`the sandbox answered with ${head.status}, which was not requested`);
    // An informational response comes before the real one.
    if (head.status < 200) return head.bodyAt < all.length ? this.read(all.subarray(head.bodyAt), connection) : NOTHING;
    const prepared = isSame ? last : prepare(head, connection, this.#sessionTag);
    this.#last = prepared;
    this.#begin(prepared);
    const body = this.#body(all.subarray(head.bodyAt));
    const { forClient } = prepared;
    const whole = Buffer.allocUnsafe(forClient.length + body.length);
    whole.write(forClient, 0, "latin1");
    whole.set(body, forClient.length);
    // Set last: as long as nothing was returned, the client can still get an error response.
    this.#status = head.status;
    return whole;
  }

  /** The sandbox has closed its connection. True if that was the proper end of its response. */
  endByClose(): boolean {
    if (this.#framing?.by === "close") this.#isOver = true;
    return this.#isOver;
  }

  #begin({ framing, isClean, sandboxKeepsMs, isEventStream }: PreparedHead): void {
    this.#framing = framing;
    this.#left = framing.by === "length" ? framing.length : 0;
    this.#chunks = framing.by === "chunks" ? new ChunkFollower() : null;
    this.#events = isEventStream ? new EventFollower() : null;
    this.#isClean = isClean;
    this.#sandboxKeepsMs = sandboxKeepsMs;
  }

  /** The bytes that belong to this response. */
  #body(bytes: Buffer): Buffer {
    if (this.#framing === null || this.#framing.by === "close") return bytes;
    let own: number;
    if (this.#chunks === null) {
      own = Math.min(this.#left, bytes.length);
      this.#left -= own;
      this.#isOver = this.#left === 0;
    } else {
      own = this.#chunks.follow(bytes);
      this.#events?.follow(bytes.subarray(0, own));
      this.#isOver = this.#chunks.isOver;
    }
    if (own === bytes.length) return bytes;
    // No further request was sent, so the surplus is no response.
    this.#isClean = false;
    return bytes.subarray(0, own);
  }
}

function startsWith(bytes: Buffer, { text, bodyAt }: ResponseHead): boolean {
  return bytes.length >= bodyAt && bytes.toString("latin1", 0, bodyAt) === text;
}

function prepare(head: ResponseHead, connection: string, sessionTag: string | undefined): PreparedHead {
  const { status, headers } = head;
  const framing = framingOf(head);
  // A body that a 204 or 304 must not have may still follow, and would be taken for the response to the next call.
  const length = onlyValue(headers, "content-length");
  const isClean =
    !isBodiless(status) || (onlyValue(headers, "transfer-encoding") === undefined && (length === undefined || length === "0"));
  const forClient = headForClient(head, framing.by === "close" ? "close" : connection, sessionTag);
  const hasEvents = isEventStream(onlyValue(headers, "content-type"), onlyValue(headers, "content-encoding"));
  const sandboxKeepsMs = head.isOld ? 0 : keepMsOf(headers);
  return { head, framing, isClean, sandboxKeepsMs, connection, sessionTag, isEventStream: hasEvents, forClient };
}

function framingOf({ status, headers, isOld }: ResponseHead): Framing {
  const coding = onlyValue(headers, "transfer-encoding");
  const length = onlyValue(headers, "content-length");
  if (isBodiless(status)) return { by: "length", length: 0 };
  if (coding !== undefined) {
    if (coding.toLowerCase() !== "chunked" || length !== undefined || isOld)
      throw new Error("the length of the sandbox's response is ambiguous");
    return { by: "chunks" };
  }
  if (length === undefined) return { by: "close" };
  if (!/^\d{1,15}$/.test(length)) throw new Error(`the sandbox's response has the content-length '${length}'`);
  return { by: "length", length: Number(length) };
}

function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

function headForClient({ status, statusLine, headers }: ResponseHead, connection: string, sessionTag: string | undefined): string {
  let text = `${statusLine}\r\n`;
  for (const [name, value] of headers) {
    if (!isPassedOn(name, status)) continue;
    text += `${name}: ${sessionTag !== undefined && name === SESSION ? tagSession(sessionTag, value) : value}\r\n`;
  }
  return `${text}connection: ${connection}\r\n\r\n`;
}

/** A response without a body has no framing headers, except that a 304 may have a content-length. */
function isPassedOn(name: string, status: number): boolean {
  if (name === "transfer-encoding") return !isBodiless(status);
  return name === "content-length" ? status !== 204 : isEndToEnd(name);
}

/** Node's default, for a sandbox that does not send its timeout. */
const DEFAULT_KEEP_MS = 5_000;
/** A connection is not used any more this long before the sandbox closes it. */
const MARGIN_MS = 1_000;

function keepMsOf(headers: ResponseHead["headers"]): number {
  if (/(^|[,\s])close($|[,\s])/i.test(onlyValue(headers, "connection") ?? "")) return 0;
  const seconds = /timeout=(\d{1,6})/.exec(onlyValue(headers, "keep-alive") ?? "")?.[1];
  return Math.max((seconds === undefined ? DEFAULT_KEEP_MS : Number(seconds) * 1_000) - MARGIN_MS, 0);
}
