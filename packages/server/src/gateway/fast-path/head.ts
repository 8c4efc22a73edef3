import { isForSandbox, REPLACED } from "../headers.ts";

// A strict parser for the plain core of HTTP/1.1. A message that it does not accept is left to Node's parser, so that two parsers
// never disagree about where a message ends.

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const REQUEST_LINE = /^(GET|POST|PUT|DELETE) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)((?: [\t\x20-\x7e\x80-\xff]*)?)$/;
const END = "\r\n\r\n";

const MAX_HEAD_BYTES = 16 * 1024;
/** Larger bodies are streamed, on the regular path. */
const MAX_BODY_BYTES = 64 * 1024;

export interface ShortRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The lines of the headers that are passed on to the sandbox unchanged. */
  readonly forSandbox: string;
  /** The head as it was received, up to the body. */
  readonly text: string;
  readonly bodyAt: number;
  readonly end: number;
}

/**
 * A whole short request; `unfinished` if its body has not arrived yet; `other` if it is anything else. A client sends the same head
 * with nearly every call: then the connection's last request is returned without parsing.
 */
export function readShortRequest(bytes: Buffer, last: ShortRequest | null = null): ShortRequest | "unfinished" | "other" {
  if (last !== null && bytes.length === last.end && bytes.toString("latin1", 0, last.bodyAt) === last.text) return last;
  const head = readHead(bytes);
  const first = REQUEST_LINE.exec(head?.first ?? "");
  if (head === null || first === null) return "other";
  const headers: Record<string, string> = {};
  let forSandbox = "";
  for (const [name, value] of head.headers) {
    // Repeated headers need Node's rules for joining them; names such as `__proto__` are not plain keys.
    if (name in headers) return "other";
    headers[name] = value;
    if (isForSandbox(name) && !REPLACED.has(name)) forSandbox += `${name}: ${value}\r\n`;
  }
  const { host, "content-length": length = "0", connection = "keep-alive" } = headers;
  if (host === undefined || !/^\d{1,5}$/.test(length) || connection.toLowerCase() !== "keep-alive") return "other";
  if ("transfer-encoding" in headers || "expect" in headers || "upgrade" in headers || "trailer" in headers) return "other";
  const { text, bodyAt } = head;
  const end = bodyAt + Number(length);
  if (end - bodyAt > MAX_BODY_BYTES || bytes.length > end) return "other";
  if (bytes.length === end) return { method: first[1] as string, url: first[2] as string, headers, forSandbox, text, bodyAt, end };
  // A client that sends a body in pieces may expect each piece to arrive at once.
  return bytes.length === bodyAt ? "unfinished" : "other";
}

export interface ResponseHead {
  readonly status: number;
  /** As a client of HTTP/1.1 gets it. */
  readonly statusLine: string;
  /** HTTP/1.0, as simple servers speak it: the connection ends with the response, and there are no chunks. */
  readonly isOld: boolean;
  readonly headers: readonly Header[];
  readonly text: string;
  readonly bodyAt: number;
}

/** The head of a sandbox's response; null while it is incomplete. Throws if it is not HTTP. */
export function readResponseHead(bytes: Buffer): ResponseHead | null {
  const head = readHead(bytes);
  if (head === null && bytes.length <= MAX_HEAD_BYTES && !bytes.includes(END)) return null;
  const first = STATUS_LINE.exec(head?.first ?? "");
  if (head === null || first === null) throw new Error("the sandbox answered with something that is not plain HTTP/1.1");
  const [, minor, status = "", reason = ""] = first;
  const statusLine = `HTTP/1.1 ${status}${reason}`;
  return { status: Number(status), statusLine, isOld: minor === "0", headers: head.headers, text: head.text, bodyAt: head.bodyAt };
}

/** The only value of a header; undefined if it is missing. Throws if there are several. */
export function onlyValue(headers: readonly Header[], name: string): string | undefined {
  let found: string | undefined;
  for (const header of headers) {
    if (header[0] !== name) continue;
    if (found !== undefined) throw new Error(`the sandbox's response has ${name} twice`);
    found = header[1];
  }
  return found;
}

type Header = readonly [name: string, value: string];

interface Head {
  /** The request line or status line. */
  readonly first: string;
  readonly headers: readonly Header[];
  readonly text: string;
  readonly bodyAt: number;
}

function readHead(bytes: Buffer): Head | null {
  const at = bytes.indexOf(END);
  if (at < 0 || at > MAX_HEAD_BYTES) return null;
  const bodyAt = at + END.length;
  const text = bytes.toString("latin1", 0, bodyAt);
  const lines = text.slice(0, at).split("\r\n");
  const headers: Header[] = [];
  for (let n = 1; n < lines.length; n++) {
    const line = lines[n] as string;
    const header = known.get(line) ?? readHeader(line);
    if (header === null) return null;
    headers.push(header);
  }
  return { first: lines[0] as string, headers, text, bodyAt };
}

/** Parsed header lines: clients and sandboxes send the same few with every message. */
const known = new Map<string, Header>();
const MAX_KNOWN = 1_000;
const MAX_KNOWN_LENGTH = 100;

function readHeader(line: string): Header | null {
  const colon = line.indexOf(":");
  const name = line.slice(0, colon).toLowerCase();
  // Not trim(): in HTTP only space and tab are whitespace.
  const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "");
  if (colon < 1 || !TOKEN.test(name) || !VALUE.test(value)) return null;
  const header: Header = [name, value];
  // Credentials are not kept.
  if (line.length > MAX_KNOWN_LENGTH || (name !== "host" && name !== "connection" && !isForSandbox(name))) return header;
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(line, header);
  return header;
}
