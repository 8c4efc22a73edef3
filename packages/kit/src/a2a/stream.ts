import type { ServerResponse } from "node:http";
import type { EventSink } from "./operations.ts";

/** A client that does not read its stream is disconnected when so much waits for it. */
const MAX_WAITING_BYTES = 16 * 1_024 ** 2;

/** Server-sent events. Comments keep an idle stream open. */
export function openEventStream(response: ServerResponse, pingMs: number, wrap: (event: object) => object): EventSink {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" });
  response.flushHeaders();
  const write = (text: string) => {
    if (response.destroyed || response.writableEnded) return;
    response.write(text);
    if (response.writableLength > MAX_WAITING_BYTES) response.destroy();
  };
  const pings = setInterval(() => write(": ping\n\n"), pingMs);
  response.once("close", () => clearInterval(pings));
  return {
    send: (event) => write(`data: ${JSON.stringify(wrap(event))}\n\n`),
    end: () => void response.end(),
    onGone: (listener) => void response.once("close", listener),
  };
}
