import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";

/** A server before another one, on loopback, that answers 500 itself to the requests that it is told to. */
export async function faultyProxy(
  target: string,
  isFaulty: (request: IncomingMessage) => boolean,
): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((asked, answer) => {
    if (isFaulty(asked)) {
      asked.resume();
      answer.writeHead(500, { "content-type": "application/json" });
      answer.end(JSON.stringify({ success: false, code: 500, message: "out of order", data: null }));
      return;
    }
    const { host } = new URL(target);
    const passed = request(new URL(asked.url ?? "/", target), { method: asked.method, headers: { ...asked.headers, host } }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    asked.pipe(passed);
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
