import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chatChunks, chatCompletion, parseChat } from "./chat.ts";
import { ApiError } from "./error.ts";
import { messageEvents, messageObject, parseMessages } from "./messages.ts";
import { parseResponses, responseEvents, responseObject } from "./responses.ts";
import { type Conversation, type Message, type ModelRequest, nextTurn, replyOf, type Script } from "./script.ts";
import { type ScriptedTokens, tokenFields } from "./tokens.ts";

export interface ScriptedOpenAiOptions {
  /** False for so many requests that keeping them would fill the memory; the list then stays empty. */
  readonly keepsRequests?: boolean;
  /** False for a model server without authentication, such as one behind a trainer's gateway. */
  readonly needsKey?: boolean;
  /** Requests with `return_token_ids` get token ids and log-probabilities. */
  readonly tokens?: ScriptedTokens;
}

export interface ScriptedOpenAi extends AsyncDisposable {
  /** The clients' base URL: `http://127.0.0.1:<port>/v1`. */
  readonly baseUrl: string;
  /** The requests that passed the checks, in order of arrival. */
  readonly requests: readonly ModelRequest[];
  /** The rejected requests, with the reasons. */
  readonly refusals: readonly string[];
  close(): Promise<void>;
}

/**
 * An OpenAI-compatible server on loopback that answers by a script instead of a model: `POST /v1/chat/completions` and
 * `POST /v1/responses`, streamed or not, and `GET /v1/models`. `POST /v1/messages` answers as Anthropic's API does. It rejects requests
 * that the real APIs reject.
 *
 *     await using model = await scriptedOpenAi([{ toolCalls: [{ name: "add", arguments: { n: 1 } }] }, "done"]);
 */
export async function scriptedOpenAi(
  script: Script,
  { keepsRequests = true, needsKey = true, tokens }: ScriptedOpenAiOptions = {},
): Promise<ScriptedOpenAi> {
  const requests: ModelRequest[] = [];
  const refusals: string[] = [];
  const stored = new Map<string, readonly Message[]>();
  let accepted = 0;
  let serial = 0;

  async function play(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${request.method} ${request.url?.split("?")[0]}`;
    const api = apis.get(route) ?? null;
    if (needsKey) checkKey(request, api);
    if (route === "GET /v1/models") return sendWhole(response, jsonOf(modelList));
    if (api === null) throw new ApiError(404, `unknown route: ${route}`);

    const body = await readJson(request);
    const conversation = api === "chat" ? parseChat(body) : api === "messages" ? parseMessages(body) : parseResponses(body, stored);
    const asked: ModelRequest = { ...conversation, api, index: accepted++, turn: turnOf(conversation), headers: request.headers, body };
    if (keepsRequests) requests.push(asked);
    const turn = await nextTurn(script, asked);
    const hasFault = typeof turn === "object" && "fault" in turn;
    if (hasFault && turn.fault === "silent") return;
    const reply = replyOf(hasFault ? turn.answer : turn, asked, serial++);
    const send = hasFault ? sendHalf : sendWhole;

    if (api === "chat" && asked.stream) return send(response, eventsOf(chatChunks(reply, body)));
    if (api === "chat") {
      const fields = tokens !== undefined && body.return_token_ids === true ? tokenFields(tokens, asked, reply) : undefined;
      return send(response, jsonOf(chatCompletion(reply, fields)));
    }
    if (api === "messages") return send(response, asked.stream ? eventsOf(messageEvents(reply)) : jsonOf(messageObject(reply)));
    const answer = responseObject(reply);
    stored.set(answer.id, [...asked.messages, { role: "assistant", text: reply.text, toolCalls: reply.toolCalls }]);
    return send(response, asked.stream ? eventsOf(responseEvents(reply)) : jsonOf(answer));
  }

  const server = createServer((request, response) => {
    play(request, response).catch((thrown: unknown) => {
      const error =
        thrown instanceof ApiError ? thrown : new ApiError(400, `the script failed: ${String(thrown)}`, { code: "script_failed" });
      refusals.push(error.message);
      response.writeHead(error.status, { ...error.headers, "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: error.message, type: error.type, param: error.param, code: error.code } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const { port } = server.address() as AddressInfo;
  return { baseUrl: `http://127.0.0.1:${port}/v1`, requests, refusals, close, [Symbol.asyncDispose]: close };
}

const apis: ReadonlyMap<string, ModelRequest["api"]> = new Map([
  ["POST /v1/chat/completions", "chat"],
  ["POST /v1/responses", "responses"],
  ["POST /v1/messages", "messages"],
]);

function checkKey({ headers }: IncomingMessage, api: ModelRequest["api"] | null): void {
  if (api === "messages") {
    if (headers["x-api-key"] === undefined)
      throw new ApiError(401, "no API key: send it as 'x-api-key: <key>'", { code: "invalid_api_key" });
    if (headers["anthropic-version"] === undefined) throw new ApiError(400, "anthropic-version: header is required");
  } else if (headers.authorization?.startsWith("Bearer ") !== true) {
    throw new ApiError(401, "no API key: send it as 'Authorization: Bearer <key>'", { code: "invalid_api_key" });
  }
}

const modelList = { object: "list", data: [{ id: "scripted", object: "model", created: 0, owned_by: "aenv" }] };

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = "";
  request.setEncoding("utf8");
  for await (const piece of request) text += piece;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Rejected below, like any other body that is not an object.
  }
  throw new ApiError(400, "the body is not a JSON object");
}

function turnOf({ messages }: Conversation): number {
  return messages.filter((message) => message.role === "assistant").length;
}

interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  /** Sent one by one. */
  readonly pieces: readonly string[];
}

function jsonOf(value: unknown): Sent {
  return { headers: { "content-type": "application/json" }, pieces: [JSON.stringify(value)] };
}

function eventsOf(events: Iterable<string>): Sent {
  const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
  return { headers, pieces: Array.from(events, (event) => `${event}\n\n`) };
}

function sendWhole(response: ServerResponse, { headers, pieces }: Sent): void {
  response.writeHead(200, headers);
  for (const piece of pieces.slice(0, -1)) response.write(piece);
  response.end(pieces.at(-1));
}

function sendHalf(response: ServerResponse, { headers, pieces }: Sent): void {
  const text = pieces.join("");
  response.writeHead(200, headers);
  response.write(text.slice(0, text.length / 2), () => response.destroy());
}
