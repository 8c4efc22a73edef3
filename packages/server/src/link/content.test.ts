import { once } from "node:events";
import { type ClientHttp2Stream, connect, createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { endAnswer, receivedContent, sendContent } from "./content.ts";

/** A request over a connection of its own, as both sides see it. */
async function openRequest(): Promise<{ client: ClientHttp2Stream; stream: ServerHttp2Stream; signal: AbortSignal }> {
  const server = createServer();
  const accepted = once(server, "stream") as Promise<[ServerHttp2Stream]>;
  await once(server.listen(0, "127.0.0.1"), "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).on("error", () => {});
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const client = session.request({ ":method": "POST" }).on("error", () => {});
  client.write("x");
  const [stream] = await accepted;
  stream.on("error", () => {});
  return { client, stream, signal: new AbortController().signal };
}

const closed = (stream: ServerHttp2Stream) => new Promise<void>((resolve) => stream.once("close", () => resolve()));

describe("the content of a request", () => {
  // Before: a file stayed open for as long as the environment liked.
  it("that never ends is refused when nothing more arrives", async () => {
    const request = await openRequest();
    const parts: string[] = [];
    const read = async () => {
      for await (const part of receivedContent(request, 20)) parts.push(String(part));
    };
    await expect(read()).rejects.toMatchObject({ code: "request.too_slow", message: "nothing more of the content arrived within 20 ms" });
    expect(parts.join("")).toBe("x");
  });

  it("that is cut off is an error", async () => {
    const request = await openRequest();
    const read = async () => {
      for await (const _ of receivedContent(request, 60_000)) request.client.destroy(new Error("the source failed"));
    };
    await expect(read()).rejects.toThrow();
  });
});

describe("an answer", () => {
  // Before: the content was kept open, and a command's place taken, for as long as the connection.
  it("that the environment does not read ends", async () => {
    const { stream } = await openRequest();
    let produced = 0;
    async function* endless() {
      for (; produced < 1_000; produced++) yield Buffer.alloc(64 * 1_024);
    }
    const ended = closed(stream);
    await expect(sendContent(stream, endless(), 20)).rejects.toMatchObject({ code: "request.timeout" });
    await ended;
    expect(produced).toBeLessThan(100);
  });

  it("that is complete and is not read ends", async () => {
    const { stream } = await openRequest();
    stream.respond({ ":status": 200 });
    stream.write(Buffer.alloc(1_000_000));
    endAnswer(stream, 20);
    await closed(stream);
  });
});
