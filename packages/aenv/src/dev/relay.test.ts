import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { Relay } from "./relay.ts";

async function sandbox(name: string): Promise<{ path: string; server: Server }> {
  const tree = temporaryTree();
  const path = join(tree.path, "sandbox.sock");
  const server = createServer((_, response) => response.end(name)).listen(path);
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    tree[Symbol.dispose]();
  });
  await once(server, "listening");
  return { path, server };
}

async function opened(): Promise<{ relay: Relay; port: number; ask: () => Promise<string> }> {
  const relay = new Relay();
  onTestFinished(() => relay.close());
  const port = await relay.listen("127.0.0.1", 0);
  return { relay, port, ask: async () => (await fetch(`http://127.0.0.1:${port}`, { headers: { connection: "close" } })).text() };
}

function openConnections(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_, count) => setImmediate(resolve, count)));
}

describe("the relay", () => {
  it("makes connections wait until there is a sandbox", async () => {
    const { relay, ask } = await opened();
    const early = [ask(), ask()];
    relay.use((await sandbox("one")).path);
    expect(await Promise.all(early)).toEqual(["one", "one"]);
  });

  it("sends new connections to the newest sandbox", async () => {
    const { relay, ask } = await opened();
    relay.use((await sandbox("one")).path);
    expect(await ask()).toBe("one");
    relay.use((await sandbox("two")).path);
    expect(await ask()).toBe("two");
  });

  it("keeps a connection with its first sandbox", async () => {
    const { relay, ask } = await opened();
    const [one, two] = [await sandbox("one"), await sandbox("two")];
    const begun = Promise.withResolvers<() => void>();
    one.server.removeAllListeners("request");
    one.server.on("request", (_, response) => begun.resolve(() => response.end("late one")));
    relay.use(one.path);
    const slow = ask();
    const finish = await begun.promise;
    relay.use(two.path);
    expect(await ask()).toBe("two");
    finish();
    expect(await slow).toBe("late one");
  });

  it("sends a slow client all of a large answer, even if the sandbox has closed long before", async () => {
    const { relay, port } = await opened();
    const large = await sandbox("x".repeat(20_000_000));
    relay.use(large.path);
    const client = connect(port, "127.0.0.1").pause();
    client.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    await expect.poll(() => openConnections(large.server)).toBe(1);
    let received = 0;
    let isSandboxDone = false;
    for await (const piece of client) {
      received += (piece as Buffer).length;
      // The client reads so slowly that all buffers between it and the sandbox are full when the sandbox closes.
      for (let turn = 0; turn < 200 && !isSandboxDone; turn++) {
        isSandboxDone = (await openConnections(large.server)) === 0;
      }
    }
    expect(received).toBeGreaterThan(20_000_000);
  });

  it("sends the reason why there is no sandbox, as JSON in the format of a sandbox", async () => {
    const { relay, ask } = await opened();
    relay.refuse("it crashed");
    expect(JSON.parse(await ask())).toMatchObject({ success: false, error: "it crashed", errorInfo: { retryable: true } });
  });

  it("gives a connection to the next sandbox when its own has ended", async () => {
    const { relay, ask } = await opened();
    const gone = await sandbox("gone");
    gone.server.close();
    await once(gone.server, "close");
    relay.hold();
    const waiting = ask();
    relay.use(gone.path);
    relay.use((await sandbox("next")).path);
    expect(await waiting).toBe("next");
  });

  it("names the port that is in use, and the next step", async () => {
    const other = createTcpServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    await expect(new Relay().listen("127.0.0.1", port)).rejects.toMatchObject({
      message: `port ${port} on 127.0.0.1 is already in use`,
      hint: expect.stringContaining("--port 0"),
    });
  });
});
