import type { IncomingMessage, ServerResponse } from "node:http";
import { headers, instanceRoutes, isObject, messageOf, parseBoundedJson } from "@aenv/contract";
import type { CompiledEnvironment } from "../compile/environment.ts";
import { disconnectSignal, readBody, sendText } from "../http/exchange.ts";
import type { Instance } from "../instances/instance.ts";
import { agentCard, cardHeaders } from "./card.ts";
import { A2aError, httpError, jsonRpcError, toA2aError } from "./error.ts";
import { versionOf } from "./fields.ts";
import { findHttpRoute } from "./http-routes.ts";
import { findOperation, type Operation, oldNames } from "./operations.ts";
import { openEventStream } from "./stream.ts";

export interface A2aOptions {
  readonly maxBodyBytes: number;
  readonly pingMs: number;
}

/** One request of A2A. */
export interface A2aRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly instance: Instance;
  /** The path below the instance's prefix. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Where the instance is on this server, if no gateway says where it is. */
  readonly prefix: string;
}

type Id = string | number | null;

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const HTTP_TYPE = /^application\/(?:a2a\+)?json\s*(?:;|$)/i;

/** A2A, as a second protocol of the agent API: the card, JSON-RPC, and JSON over HTTP, in the versions 1.0 and 0.3. */
export class A2aEndpoint {
  readonly #environment: CompiledEnvironment;
  readonly #options: A2aOptions;

  constructor(environment: CompiledEnvironment, options: A2aOptions) {
    this.#environment = environment;
    this.#options = options;
  }

  async answer(call: A2aRequest): Promise<void> {
    const { request, path } = call;
    if (path === CARD_PATH) return this.#answerCard(call);
    if (path === A2A_PATH && request.method === "POST") return this.#answerJsonRpc(call);
    return this.#answerHttp(call);
  }

  async #answerCard(call: A2aRequest): Promise<void> {
    const { request, response, instance, query } = call;
    if (request.method !== "GET") return sendText(response, 405, "Method Not Allowed");
    let isHybrid = true;
    try {
      isHybrid = versionOf(request.headers["a2a-version"], query) !== "1.0";
    } catch (error) {
      return sendHttpError(response, error);
    }
    const baseUrl = baseUrlOf(call);
    const needsToken = request.headers[headers.needsToken] === "1";
    const text = JSON.stringify(agentCard({ environment: this.#environment, tools: instance.tools, baseUrl, needsToken, isHybrid }));
    const toKeep = cardHeaders(text, baseUrl);
    for (const [name, value] of Object.entries(toKeep)) response.setHeader(name, value);
    const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
    if (known.includes(toKeep.etag) || known.includes("*")) return void response.writeHead(304).end();
    sendText(response, 200, text, "application/json");
  }

  /** The HTTP status is always 200. */
  async #answerJsonRpc(call: A2aRequest): Promise<void> {
    const { request, response, instance, query } = call;
    let id: Id = null;
    const fail = (error: A2aError) => sendText(response, 200, JSON.stringify(jsonRpcError(id, error)), "application/json");
    let name: string | undefined;
    try {
      const text = await readBody(request, this.#options.maxBodyBytes);
      if (!JSON_TYPE.test(request.headers["content-type"] ?? ""))
        throw new A2aError("CONTENT_TYPE_NOT_SUPPORTED", "The content type must be application/json");
      const body = parseJson(text);
      if (!isObject(body)) throw new A2aError("REQUEST", "Invalid Request: a request is one JSON object");
      if (typeof body.id === "string" || typeof body.id === "number") id = body.id;
      if (body.jsonrpc !== "2.0" || typeof body.method !== "string" || (body.id !== undefined && id === null && body.id !== null))
        throw new A2aError("REQUEST", "Invalid Request: it needs jsonrpc '2.0', a method, and an id that is a text or a number");
      versionOf(request.headers["a2a-version"], query);
      const isOld = body.method.includes("/");
      name = isOld ? oldNames[body.method] : body.method;
      const operation = name === undefined ? undefined : findOperation(name);
      if (operation === undefined) throw new A2aError("METHOD", `Method '${body.method.slice(0, 80)}' not found`);
      const params = body.params ?? {};
      if (!isObject(params)) throw new A2aError("PARAMS", "Invalid parameters: params must be an object");
      const signal = disconnectSignal(response);
      const made = { conversations: instance.conversations, params, version: isOld ? ("0.3" as const) : ("1.0" as const), signal };
      const wrap = (result: object) => ({ jsonrpc: "2.0", id, result });
      if (operation.kind === "stream") return await operation.run(made, () => openEventStream(response, this.#options.pingMs, wrap));
      const result = await operation.run(made);
      sendText(response, 200, JSON.stringify(wrap(result)), "application/json");
    } catch (error) {
      fail(toA2aError(error, name === "CancelTask" ? "TASK_NOT_CANCELABLE" : "UNSUPPORTED_OPERATION"));
    }
  }

  async #answerHttp(call: A2aRequest): Promise<void> {
    const { request, response, path, query } = call;
    let isCancel = false;
    try {
      versionOf(request.headers["a2a-version"], query);
      const found = findHttpRoute(request.method ?? "", path.slice(A2A_PATH.length));
      if (found === null) throw new A2aError("METHOD", `${request.method} is no operation of A2A at this path`);
      isCancel = found.name === "CancelTask";
      const operation = findOperation(found.name) as Operation;
      const params = { ...(await this.#paramsOf(call)), ...found.params };
      const signal = disconnectSignal(response);
      const made = { conversations: call.instance.conversations, params, version: found.version, signal };
      if (operation.kind === "stream")
        return await operation.run(made, () => openEventStream(response, this.#options.pingMs, (event) => event));
      const result = await operation.run(made);
      const type = request.headers.accept?.includes("application/a2a+json") === true ? "application/a2a+json" : "application/json";
      sendText(response, 200, JSON.stringify(result), type);
    } catch (error) {
      sendHttpError(response, toA2aError(error, isCancel ? "TASK_NOT_CANCELABLE" : "UNSUPPORTED_OPERATION"));
    }
  }

  async #paramsOf({ request, query }: A2aRequest): Promise<Record<string, unknown>> {
    if (request.method === "GET" || request.method === "DELETE") return Object.fromEntries(query);
    const text = await readBody(request, this.#options.maxBodyBytes);
    if (text === "") return {};
    if (!HTTP_TYPE.test(request.headers["content-type"] ?? ""))
      throw new A2aError("CONTENT_TYPE_NOT_SUPPORTED", "The content type must be application/json or application/a2a+json");
    const body = parseJson(text);
    if (!isObject(body)) throw new A2aError("REQUEST", "The body must be a JSON object");
    return body;
  }
}

const A2A_PATH = instanceRoutes.a2a.path;
const CARD_PATH = instanceRoutes.agentCard.path;

function sendHttpError(response: ServerResponse, error: unknown): void {
  const { status, body } = httpError(toA2aError(error));
  sendText(response, status, JSON.stringify(body), "application/json");
}

function parseJson(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    throw new A2aError("PARSE", `Parse error: ${messageOf(error)}`);
  }
}

/** What the gateway says, else the address of the request. */
function baseUrlOf({ request, prefix }: A2aRequest): string {
  const said = request.headers[headers.baseUrl];
  const url = typeof said === "string" && URL.canParse(said) ? said : `http://${request.headers.host ?? "localhost"}${prefix}`;
  return url.endsWith("/") ? url : `${url}/`;
}
