import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface Unreliable extends AsyncDisposable {
  readonly url: string;
  /** The statuses of the answers, in order; 0 for one that was cut. */
  readonly answers: readonly number[];
}

/** A proxy in front of a server: the first request is refused for now, the second one fails, the answer to the third is cut after two lines. */
export async function unreliable(target: string): Promise<Unreliable> {
  const answers: number[] = [];
  const server = createServer(async (request, response) => {
    const refusal = [429, 503][answers.length];
    if (refusal !== undefined) {
      answers.push(refusal);
      response.writeHead(refusal, { "retry-after": "0" }).end();
      return;
    }
    const isCut = answers.length === 2;
    answers.push(isCut ? 0 : 200);
    const body = request.method === "POST" ? { body: new Uint8Array(await buffer(request)) } : {};
    const type = { "content-type": request.headers["content-type"] ?? "application/json" };
    const answer = await fetch(target + request.url, { method: request.method ?? "GET", headers: type, ...body });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    let sent = "";
    for await (const piece of answer.body ?? []) {
      sent += Buffer.from(piece).toString();
      // The first line is a ping, the second one a result.
      const first = /^.*\n.*\n/.exec(sent)?.[0];
      if (isCut && first !== undefined) return void response.write(first, () => response.destroy());
      if (!isCut) response.write(piece);
    }
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, answers, [Symbol.asyncDispose]: close };
}
