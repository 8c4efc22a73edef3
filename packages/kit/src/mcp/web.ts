import type { IncomingMessage, ServerResponse } from "node:http";

/** Converts a Node request, whose body is already read, to a web Request; it aborts when the client disconnects. */
export function toWebRequest(request: IncomingMessage, response: ServerResponse, body: string | undefined): Request {
  const controller = new AbortController();
  response.once("close", () => response.writableFinished || controller.abort());
  const headers = new Headers();
  for (let at = 0; at < request.rawHeaders.length; at += 2)
    headers.append(request.rawHeaders[at] as string, request.rawHeaders[at + 1] as string);
  const method = request.method ?? "GET";
  const url = new URL(request.url ?? "/", "http://localhost");
  return new Request(url, { method, headers, signal: controller.signal, ...(body !== undefined && method === "POST" && { body }) });
}

/** Sends a web Response as a Node response, streaming its body with back-pressure. */
export async function sendWebResponse(answer: Response, response: ServerResponse): Promise<void> {
  if (response.destroyed) return void answer.body?.cancel();
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) return void response.end();
  response.flushHeaders();
  const reader = answer.body.getReader();
  response.once("close", () => void reader.cancel().catch(() => {}));
  for (;;) {
    const { done, value } = await reader.read();
    if (done || response.destroyed) break;
    if (!response.write(value)) await drained(response);
  }
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once("drain", resolve);
    response.once("close", resolve);
  });
}
