import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { KubernetesApi } from "../api/client.ts";

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
}

/** Answers a request: a status with JSON, or whatever it writes to the response itself. */
export type Answer = { readonly status: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> } | null;

/** An API server whose answers a test writes. */
export interface ScriptedApi extends AsyncDisposable {
  readonly port: number;
  readonly api: KubernetesApi;
  readonly requests: readonly ApiRequest[];
}

export async function scriptedApi(answer: (request: ApiRequest, response: ServerResponse) => Answer): Promise<ScriptedApi> {
  const requests: ApiRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const request = await read(incoming);
    requests.push(request);
    const answered = answer(request, response);
    if (answered === null) return;
    response.writeHead(answered.status, { "content-type": "application/json", ...answered.headers });
    response.end(JSON.stringify(answered.body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const api = new KubernetesApi({ server: `http://127.0.0.1:${port}` });
  return {
    port,
    api,
    requests,
    [Symbol.asyncDispose]: async () => {
      await api.close();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function read(incoming: IncomingMessage): Promise<ApiRequest> {
  const { pathname, searchParams } = new URL(incoming.url ?? "/", "http://api");
  let text = "";
  for await (const piece of incoming.setEncoding("utf8")) text += piece;
  return { method: incoming.method ?? "", path: pathname, query: searchParams, body: text === "" ? null : JSON.parse(text) };
}
