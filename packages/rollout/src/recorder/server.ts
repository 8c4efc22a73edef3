import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isPlatformError, messageOf } from "@aenv/contract";
import { Agent } from "undici";
import { isAllowed, refusalFor } from "./allowed.ts";
import { forward } from "./forward.ts";
import { type McpListener, McpRecorder } from "./mcp.ts";
import { type ModelListener, ModelRecorder } from "./model.ts";

/** The endpoint of the model to which exchanges are forwarded. Its key never reaches the agent's program. */
export interface UpstreamModel {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Asks for token ids and log-probabilities in every request of a program. */
  readonly wantsTokens?: boolean;
}

export interface RecordingServerOptions {
  /** Called when the model's endpoint tells a program that it is busy, with the pause it asks for. */
  readonly onBusy?: (pauseMs: number) => void;
}

export interface Recording {
  /** The MCP URL of the episode's instance. */
  readonly instanceUrl: string;
  readonly model: UpstreamModel | null;
  readonly onToolCall: McpListener;
  readonly onExchange: ModelListener;
}

/** The addresses of one episode, for a program that plays it. They work until `close`. */
export interface RecordedAddresses {
  readonly agentUrl: string;
  /** Address for clients of OpenAI's APIs; null without a model. */
  readonly openaiUrl: string | null;
  /** Address for clients of Anthropic's API, which append `/v1/messages` themselves; null without a model. */
  readonly anthropicUrl: string | null;
  /** The key to be sent to the model's addresses: worth nothing anywhere else. */
  readonly modelKey: string;
  /** Ends the requests that are still under way, and resolves when all of them are recorded. */
  close(): Promise<void>;
}

/** One recording, and the requests of it that are under way. */
interface OpenRecording {
  readonly recording: Recording;
  readonly requests: Map<ServerResponse, Promise<void>>;
}

/**
 * A server on loopback between programs that play episodes and what they use: the tools of their instance, and the model. Everything is
 * passed on unchanged, streams too, and recorded, so that a trajectory holds what the model saw and what the tools answered.
 */
export class RecordingServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #onBusy: RecordingServerOptions["onBusy"];
  readonly #connections = new Agent({ keepAliveTimeout: 30_000, headersTimeout: 0, bodyTimeout: 0 });
  readonly #recordings = new Map<string, OpenRecording>();

  private constructor(server: Server, { onBusy }: RecordingServerOptions) {
    this.#server = server;
    this.#onBusy = onBusy;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      this.#accept(request, response);
    });
  }

  static async open(options: RecordingServerOptions = {}): Promise<RecordingServer> {
    const server = createServer({ keepAliveTimeout: 30_000 });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new RecordingServer(server, options);
  }

  record(recording: Recording): RecordedAddresses {
    const key = randomBytes(16).toString("hex");
    const requests = new Map<ServerResponse, Promise<void>>();
    this.#recordings.set(key, { recording, requests });
    const { port } = this.#server.address() as AddressInfo;
    const base = `http://127.0.0.1:${port}/${key}`;
    return {
      agentUrl: `${base}/mcp`,
      openaiUrl: recording.model === null ? null : `${base}/v1`,
      anthropicUrl: recording.model === null ? null : base,
      modelKey: key,
      close: async () => {
        this.#recordings.delete(key);
        for (const response of requests.keys()) response.destroy();
        await Promise.all(requests.values());
      },
    };
  }

  async close(): Promise<void> {
    this.#recordings.clear();
    this.#server.close();
    this.#server.closeAllConnections();
    await this.#connections.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #accept(request: IncomingMessage, response: ServerResponse): void {
    const [address = "", query] = (request.url ?? "").split("?");
    const [, key = "", ...rest] = address.split("/");
    const open = this.#recordings.get(key);
    if (open === undefined) {
      send(response, 404, "no episode has this address; it may have ended");
      return;
    }
    const answering = this.#answer(open.recording, rest.join("/"), query, request, response)
      .catch((error: unknown) => {
        if (isPlatformError(error, "request.too_large")) send(response, error.status, error.message);
        else if (!response.headersSent) send(response, 502, `the recording server could not pass the request on: ${messageOf(error)}`);
        else response.destroy();
      })
      .finally(() => open.requests.delete(response));
    open.requests.set(response, answering);
  }

  async #answer(
    recording: Recording,
    path: string,
    query: string | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const common = { request, response, dispatcher: this.#connections };
    if (path === "mcp") {
      const { instanceUrl, onToolCall } = recording;
      return forward({ ...common, url: instanceUrl, headers: {}, recorder: new McpRecorder(onToolCall) });
    }
    const { model } = recording;
    if (model === null) return send(response, 404, "this run has no model; name one with --model and --base-url");
    const api = path.replace(/^v1\//, "");
    if (!isAllowed(request.method, api)) {
      response.writeHead(403, { "content-type": "application/json" }).end(JSON.stringify(refusalFor(request.method, api, request.headers)));
      return;
    }
    const isAnthropic = api.startsWith("messages");
    const credentials: Record<string, string> = isAnthropic ? { "x-api-key": model.apiKey } : { authorization: `Bearer ${model.apiKey}` };
    const url = `${model.baseUrl.replace(/\/$/, "")}/${api}`;
    const recorder = new ModelRecorder({
      api,
      url,
      wantsTokens: model.wantsTokens === true,
      listener: recording.onExchange,
      onBusy: this.#onBusy,
    });
    await forward({
      ...common,
      url: query === undefined ? url : `${url}?${query}`,
      headers: { ...credentials, ...model.headers },
      recorder,
    });
  }
}

function send(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error: { message, type: "aenv_recorder" } }));
}
