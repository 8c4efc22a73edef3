import { isForSandbox } from "../headers.ts";

// The plain core of HTTP/1.1, read strictly. What is not surely understood is left to Node's own parser, so that there is never a
// second opinion about where a message ends.

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const REQUEST_LINE = /^(GET|POST|PUT|DELETE) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const STATUS_LINE = /^HTTP\/1\.1 ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const END = "\r\n\r\n";

const MAX_HEAD_BYTES = 16 * 1024;
/** Larger bodies are no tool calls, and deserve to be streamed. */
const MAX_BODY_BYTES = 64 * 1024;

export interface ShortRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyAt: number;
  readonly end: number;
}

/** A short request, whole; `unfinished` if none of its body is there yet; `other` if it is anything else. */
export function readShortRequest(bytes: Buffer): ShortRequest | "unfinished" | "other" {
  const head = readHead(bytes);
  const first = REQUEST_LINE.exec(head?.first ?? "");
  if (head === null || first === null) return "other";
  const method = first[1] as string;
  const url = first[2] as string;
  const headers: Record<string, string> = {};
  for (const header of head.headers) {
    // A header that comes twice has a meaning of its own, and so has a name that every object knows.
    if (header[0] in headers) return "other";
    headers[header[0]] = header[1];
  }
  const { host, "content-length": length = "0", connection = "keep-alive" } = headers;
  if (host === undefined || !/^\d{1,5}$/.test(length) || connection.toLowerCase() !== "keep-alive") return "other";
  if ("transfer-encoding" in headers || "expect" in headers || "upgrade" in headers || "trailer" in headers) return "other";
  const { bodyAt } = head;
  const end = bodyAt + Number(length);
  if (end - bodyAt > MAX_BODY_BYTES || bytes.length > end) return "other";
  if (bytes.length === end) return { method, url, headers, bodyAt, end };
  // Whoever sends a body in pieces may want each to arrive by itself.
  return bytes.length === bodyAt ? "unfinished" : "other";
}

export interface ResponseHead {
  readonly status: number;
  readonly statusLine: string;
  readonly headers: readonly Header[];
  readonly bodyAt: number;
}

/** The head of a sandbox's answer; null while it is unfinished. Throws if it is none. */
export function readResponseHead(bytes: Buffer): ResponseHead | null {
  const head = readHead(bytes);
  if (head === null && bytes.length <= MAX_HEAD_BYTES && !bytes.includes(END)) return null;
  const status = STATUS_LINE.exec(head?.first ?? "")?.[1];
  if (head === null || status === undefined) throw new Error("the sandbox answered with something that is not plain HTTP/1.1");
  return { status: Number(status), statusLine: head.first, headers: head.headers, bodyAt: head.bodyAt };
}

/** The only value of a header; undefined if it is not there. Throws if there are several. */
export function onlyValue(headers: readonly Header[], name: string): string | undefined {
  let found: string | undefined;
  for (const header of headers) {
    if (header[0] !== name) continue;
    if (found !== undefined) throw new Error(`the sandbox's answer says ${name} twice`);
    found = header[1];
  }
  return found;
}

type Header = readonly [name: string, value: string];

interface Head {
  readonly first: string;
  readonly headers: readonly Header[];
  /** Where the body begins. */
  readonly bodyAt: number;
}

function readHead(bytes: Buffer): Head | null {
  const at = bytes.indexOf(END);
  if (at < 0 || at > MAX_HEAD_BYTES) return null;
  const lines = bytes.toString("latin1", 0, at).split("\r\n");
  const headers: Header[] = [];
  for (let n = 1; n < lines.length; n++) {
    const line = lines[n] as string;
    const header = known.get(line) ?? readHeader(line);
    if (header === null) return null;
    headers.push(header);
  }
  return { first: lines[0] as string, headers, bodyAt: at + END.length };
}

/** Clients and sandboxes say the same few lines with every message. */
const known = new Map<string, Header>();
const MAX_KNOWN = 1_000;
const MAX_KNOWN_LENGTH = 100;

function readHeader(line: string): Header | null {
  const colon = line.indexOf(":");
  const name = line.slice(0, colon).toLowerCase();
  // Not trim(): for HTTP only these two are blank.
  const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "");
  if (colon < 1 || !TOKEN.test(name) || !VALUE.test(value)) return null;
  const header: Header = [name, value];
  // What is secret is not kept.
  if (line.length > MAX_KNOWN_LENGTH || (name !== "host" && name !== "connection" && !isForSandbox(name))) return header;
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(line, header);
  return header;
}
