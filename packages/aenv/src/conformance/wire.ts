import { isErrorCode, isObject, readBoundedText, sandboxEnvelope, sseEvents, tryJson } from "@aenv/contract";
import { Violation } from "./violation.ts";

export interface WireOptions {
  /** Where the routes of the instance begin. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Ends all requests. */
  readonly stop: AbortSignal;
  /** The role of the requests that an environment with roles needs one for; null without roles. */
  readonly role?: string | null;
}

/** An HTTP response, read whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined if it is none. */
  readonly json: unknown;
}

/** A refusal in the documented form. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** Limit of an answer: more than a page of tasks or a state of any environment. */
const MAX_BYTES = 64 * 1_024 ** 2;
const PROTOCOL = "2025-06-18";

/** Requests to one instance exactly as they are written, without the tolerance of the SDK. */
export class Wire {
  readonly #options: WireOptions;
  #session: string | null = null;
  #lastId = 0;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  get origin(): URL {
    return new URL(this.#options.url);
  }

  get role(): string | null {
    return this.#options.role ?? null;
  }

  /** The same for a role of the instance. */
  as(role: string): Wire {
    return new Wire({ ...this.#options, role });
  }

  /** A path of what each role has of its own. */
  ofRole(path: string): string {
    return this.role === null ? path : `${path}?role=${this.role}`;
  }

  /** A body about what each role has of its own. */
  withRole(body: object): object {
    return this.role === null ? body : { ...body, role: this.role };
  }

  /** The same for another instance below this address. */
  below(path: string): Wire {
    return new Wire({ ...this.#options, url: this.#options.url + path });
  }

  /** Sends a request. A value is sent as JSON; a text as it is. */
  async send(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const { url, timeoutMs, stop, headers: common = {} } = this.#options;
    const what = `${method} ${path}`;
    try {
      const response = await fetch(url + path, {
        method,
        headers: { ...common, ...(body !== undefined && { "content-type": "application/json" }), ...headers },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
        signal: AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)]),
      });
      const text = await readBoundedText(response.body, { maxBytes: MAX_BYTES });
      return { status: response.status, headers: response.headers, text, json: tryJson(text) };
    } catch (error) {
      const { name, cause, message } = error as Error & { cause?: Error };
      if (name === "TimeoutError") throw new Violation(`${what} was not answered within ${timeoutMs / 1_000} s`);
      throw new Violation(`${what} was not answered: ${cause?.message || message}`);
    }
  }

  /** The data of a successful response. */
  async ask(method: "GET" | "POST", path: string, body?: unknown): Promise<unknown> {
    const answer = await this.send(method, path, body ?? (method === "POST" ? {} : undefined));
    const envelope = sandboxEnvelope.safeParse(answer.json);
    if (answer.status !== 200 || !envelope.success || !envelope.data.success)
      throw new Violation(`${method} ${path} must be answered with 200 and {"success": true, "data": …}; it was ${shown(answer)}`);
    return envelope.data.data;
  }

  /** A refusal with one of these statuses; `codes`, if any are given, are the codes that it may have. */
  async refused(method: string, path: string, body: unknown, statuses: readonly number[], codes: readonly string[] = []): Promise<Refusal> {
    const answer = await this.send(method, path, body);
    const { status, json } = answer;
    const info = isObject(json) && isObject(json.errorInfo) ? json.errorInfo : isObject(json) && isObject(json.error) ? json.error : {};
    const { code } = info;
    const message = isObject(json) ? (typeof json.error === "string" ? json.error : json.message) : undefined;
    const wanted = `${method} ${path} with ${cut(typeof body === "string" ? body : (JSON.stringify(body) ?? "no body"))}`;
    const form = '{"success": false, "error": "what is wrong", "errorInfo": {"code": …, "retryable": false}}';
    const named = codes.length === 0 ? "" : ` and the code ${codes.join(" or ")}`;
    if (!statuses.includes(status))
      throw new Violation(`${wanted} must be refused with ${statuses.join(" or ")}${named}; it was ${shown(answer)}`);
    if (typeof code !== "string" || typeof message !== "string" || !isErrorCode(code))
      throw new Violation(`${wanted} must be refused with ${form}, and a code of the table of errors; it was ${shown(answer)}`);
    if (codes.length > 0 && !codes.includes(code)) throw new Violation(`${wanted} must be refused with${named.slice(4)}; it was '${code}'`);
    return { status, code, message };
  }

  /** Begins an MCP session. Servers without sessions name none. */
  async initialize(): Promise<Record<string, unknown>> {
    const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: "aenv-test", version: "1" } };
    const answer = await this.#post({ method: "initialize", params, id: ++this.#lastId });
    this.#session = answer.headers.get("mcp-session-id");
    return resultOf("initialize", answer, this.#lastId);
  }

  async notify(method: string): Promise<number> {
    return (await this.#post({ method })).status;
  }

  /** The result of an MCP request. An error is a violation. */
  async rpc(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    return resultOf(method, await this.#post({ method, params, id }), id);
  }

  /** The message that answers an MCP request, be it a result or an error. */
  async message(method: string, params: unknown): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    const answer = await this.#post({ method, params, id });
    return messageIn(answer, id) ?? fail(`the MCP request ${method} must be answered with a JSON-RPC message; it was ${shown(answer)}`);
  }

  #post(message: Record<string, unknown>): Promise<Answer> {
    const session = this.#session === null ? {} : { "mcp-session-id": this.#session };
    const headers = { accept: "application/json, text/event-stream", "mcp-protocol-version": PROTOCOL, ...session };
    return this.send("POST", this.role === null ? "/mcp" : `/role/${this.role}/mcp`, { jsonrpc: "2.0", ...message }, headers);
  }
}

function resultOf(method: string, answer: Answer, id: number): Record<string, unknown> {
  const message = messageIn(answer, id);
  if (message !== null && isObject(message.result)) return message.result;
  return fail(`the MCP request ${method} must be answered with {"jsonrpc": "2.0", "id": ${id}, "result": {…}}; it was ${shown(answer)}`);
}

/** The message with this id, in a JSON response or in a stream of events. */
function messageIn({ json, text, headers }: Answer, id: number): Record<string, unknown> | null {
  const isStream = (headers.get("content-type") ?? "").startsWith("text/event-stream");
  const messages = isStream ? sseEvents(text).map(({ data }) => tryJson(data)) : [json];
  return messages.find((one): one is Record<string, unknown> => isObject(one) && one.jsonrpc === "2.0" && one.id === id) ?? null;
}

function fail(message: string): never {
  throw new Violation(message);
}

export function shown({ status, text }: Pick<Answer, "status" | "text">): string {
  return `${status} ${text === "" ? "without a body" : cut(text)}`;
}

export function cut(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}
