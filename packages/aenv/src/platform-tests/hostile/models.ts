import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const MEBIBYTE = Buffer.alloc(1_024 ** 2, "a");

/** Sends until the client leaves. */
export function endless(response: ServerResponse, first: string | Uint8Array, piece: Uint8Array = MEBIBYTE): void {
  response.on("error", () => {});
  const send = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on("drain", send);
  response.write(first);
  send();
}

const deep = (levels: number) => `{"choices":${"[".repeat(levels)}${"]".repeat(levels)}}`;
const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "again" } }] })}\n\n`;

/** What a model's endpoint answers, and what the unscored outcome of its episode says. */
export const modelAttacks: Readonly<Record<string, readonly [answer: (response: ServerResponse) => void, message: string]>> = {
  "an answer without end": [(response) => endless(response, '{"choices":[{"message":{"content":"'), "larger than 33554432 bytes"],
  "an error without end": [(response) => endless(response.writeHead(400), '{"error":{"message":"'), "answered 400"],
  "events without end": [
    (response) => endless(response.writeHead(200, { "content-type": "text/event-stream" }), event, Buffer.from(event.repeat(10_000))),
    "larger than 33554432 bytes",
  ],
  "100,000 levels of JSON": [(response) => response.end(deep(100_000)), "nested deeper than 200 levels"],
  "200,000 bad choices": [(response) => response.end(JSON.stringify({ choices: Array(200_000).fill(0) })), "choices.0 must be an object"],
};

export interface HostileModel extends AsyncDisposable {
  readonly baseUrl: string;
  /** How many requests it got. */
  requests(): number;
}

/** A model's endpoint that answers every request so. */
export async function hostileModel(answer: (response: ServerResponse) => void): Promise<HostileModel> {
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    request.resume();
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests: () => requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
