import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { DockerApi } from "./api.ts";
import { jsonLines } from "./exits.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A daemon that answers everything but its version like this. */
async function daemon(answer: (response: ServerResponse) => void): Promise<DockerApi> {
  const folder = mkdtempSync(join(tmpdir(), "aenv-docker-"));
  const socket = join(folder, "docker.sock");
  const server = createServer((request, response) => {
    response.on("error", () => {});
    if (request.url === "/version") response.end(JSON.stringify({ ApiVersion: "1.47", MinAPIVersion: "1.24" }));
    else answer(response);
  }).listen(socket);
  await once(server, "listening");
  const api = new DockerApi(socket);
  closers.push(async () => {
    await api.close();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return api;
}

const PIECE = Buffer.alloc(1024 ** 2, "a");
function endless(response: ServerResponse): void {
  const send = () => {
    while (!response.destroyed && response.write(PIECE));
  };
  response.on("drain", send);
  send();
}

it("an answer of the daemon is read up to 64 MiB, also one with an error", async () => {
  const api = await daemon(endless);
  const message = expect.stringContaining("to /containers/json is not read: it is larger than 67108864 bytes");
  await expect(api.list("/containers/json")).rejects.toMatchObject({ code: "sandbox.lost", message });
  const failing = await daemon((response) => endless(response.writeHead(500)));
  await expect(failing.list("/containers/json")).rejects.toMatchObject({ code: "sandbox.lost" });
});

it("an answer of the daemon that is nested deeper than 200 levels is not read", async () => {
  const api = await daemon((response) => response.end(`${"[".repeat(10_000)}${"]".repeat(10_000)}`));
  await expect(api.call("GET", "/info")).rejects.toThrow("nested deeper than 200 levels");
});

it("an event of the daemon is one line of up to a MiB", async () => {
  const api = await daemon(endless);
  await expect(jsonLines(await api.stream("GET", "/events")).next()).rejects.toThrow("a line of more than 1048576 characters");
});
