import { Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";

/** A request as it is sent: no header is added except those that HTTP requires. */
export interface RawRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A value other than a string is sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

export interface Exchange {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The JSON-RPC messages of the response, whether JSON or a stream. */
  readonly messages: readonly unknown[];
}

const agent = new Agent({ keepAlive: true });

/** Sends a request and reads the whole response. */
export function exchange(url: string, { method = "POST", headers = {}, body, signal }: RawRequest): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, agent, headers, ...(signal !== undefined && { signal }) }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        const { statusCode: status = 0, headers: received } = response;
        resolve({ status, headers: received, text, messages: messagesOf(received["content-type"], text) });
      });
    });
    request.on("error", reject);
    request.end(body === undefined || typeof body === "string" ? body : JSON.stringify(body));
  });
}

export function messagesOf(contentType: string | undefined, text: string): unknown[] {
  if (contentType?.startsWith("text/event-stream") !== true) return text === "" ? [] : [JSON.parse(text)];
  return text
    .split(/\r?\n\r?\n/)
    .map(dataOf)
    .filter((data) => data !== "")
    .map((data) => JSON.parse(data));
}

function dataOf(event: string): string {
  return event
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length).trimStart())
    .join("\n");
}

/** The headers of a well-behaved client of the 2025 revisions. */
export const jsonHeaders = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** Initializes a session as a client of a 2025 revision; returns its id. */
export async function openSession(url: string, protocolVersion = "2025-11-25"): Promise<string> {
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const hello = await exchange(url, { headers: jsonHeaders, body: { jsonrpc: "2.0", id: 0, method: "initialize", params } });
  const id = hello.headers["mcp-session-id"];
  if (typeof id !== "string") throw new Error(`no session was opened: ${hello.status} ${hello.text}`);
  await exchange(url, {
    headers: { ...jsonHeaders, "mcp-session-id": id },
    body: { jsonrpc: "2.0", method: "notifications/initialized" },
  });
  return id;
}

/** A response that is read as it arrives. */
export interface Conversation {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The next block of the stream, a message or a comment; null once the server has ended it. */
  next(): Promise<string | null>;
  hangUp(): void;
}

/** Sends a request and returns when the response begins. */
export async function converse(url: string, { method = "POST", headers = {}, body }: RawRequest): Promise<Conversation> {
  const request = httpRequest(url, { method, agent: false, headers });
  request.end(body === undefined || typeof body === "string" ? body : JSON.stringify(body));
  const response = await new Promise<IncomingMessage>((resolve, reject) => request.on("response", resolve).on("error", reject));
  const blocks = readBlocks(response);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    next: async () => (await blocks.next()).value ?? null,
    hangUp: () => request.destroy(),
  };
}

async function* readBlocks(response: IncomingMessage): AsyncGenerator<string, undefined> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 2);
    }
  }
}

/** Sends a request and disconnects before the response, once `isTime` resolves. */
export async function hangUpWhen(isTime: Promise<unknown>, url: string, { headers = {}, body }: RawRequest): Promise<void> {
  const request = httpRequest(url, { method: "POST", agent: false, headers });
  const gone = new Promise<void>((resolve) => request.on("close", resolve).on("error", () => {}));
  request.end(JSON.stringify(body));
  await isTime;
  request.destroy();
  await gone;
}
