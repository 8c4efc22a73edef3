import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { expect, it, onTestFinished } from "vitest";
import { readProgram } from "./program-offer.ts";

const PIECE = Buffer.alloc(1024 ** 2, "a");

/** Sends for as long as somebody reads, and counts the bytes. */
async function pour(response: ServerResponse, count: (bytes: number) => void): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  const closed = new Promise((resolve) => response.once("close", resolve));
  while (!response.destroyed) {
    count(PIECE.length);
    if (!response.write(PIECE)) await Promise.race([new Promise((resolve) => response.once("drain", resolve)), closed]);
  }
}

it("a program that answers without an end is read up to a limit, and then offers nothing", async () => {
  let sent = 0;
  const server = createServer((request, response) => {
    request.resume();
    void pour(response, (bytes) => {
      sent += bytes;
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    await pool.destroy();
    server.closeAllConnections();
    server.close();
  });
  expect(await readProgram(pool, new AbortController().signal)).toMatchObject({ tools: [], catalogue: { total: 0, functions: [] } });
  // The server reads at most 16 MiB of each answer, and the buffers of the sockets hold some more.
  expect(sent).toBeLessThan(128 * 1024 ** 2);
});
