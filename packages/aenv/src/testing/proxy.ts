import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";

/** A reverse proxy on loopback that answers 500 to the requests that `isFaulty` selects. */
export async function faultyProxy(
  target: string,
  isFaulty: (request: IncomingMessage) => boolean,
): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((incoming, answer) => {
    if (isFaulty(incoming)) {
      incoming.resume();
      answer.writeHead(500, { "content-type": "application/json" });
      answer.end(JSON.stringify({ success: false, code: 500, message: "out of order", data: null }));
      return;
    }
    const { host } = new URL(target);
    const forwarded = request(
      new URL(incoming.url ?? "/", target),
      { method: incoming.method, headers: { ...incoming.headers, host } },
      (response) => {
        answer.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(answer);
      },
    );
    forwarded.on("error", () => answer.destroy());
    incoming.pipe(forwarded);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
