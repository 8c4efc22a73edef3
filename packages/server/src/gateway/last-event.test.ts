import { Agent, type RequestListener } from "node:http";
import { PlatformError } from "@aenv/contract";
import { describe, expect, it, vi } from "vitest";
import { ID, openGateway, paths, responseOf, textOf } from "./fixtures/gateway.ts";
import { EventFollower, isEventStream, lastEvent } from "./last-event.ts";

const PATH = `/env-instance/${ID}/mcp`;
const request = { jsonrpc: "2.0", id: "call-7", method: "tools/call", params: { name: "crash" } };
const lost = new PlatformError("sandbox.lost", "it is gone");

describe("the last event of a stream", () => {
  it("has the id of the request, and the code of the failure", () => {
    const event = lastEvent(Buffer.from(JSON.stringify(request)), lost);
    expect(event).toMatch(/^event: message\ndata: .*\n\n$/);
    const error = { code: -32_603, message: "it is gone", data: { code: "sandbox.lost", retryable: true } };
    expect(JSON.parse(event?.split("data: ")[1] ?? "")).toEqual({ jsonrpc: "2.0", id: "call-7", error });
  });

  it.each([
    "",
    "no JSON",
    "[]",
    '{"id":1}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
  ])("is not made for %j, which expects no answer", (body) => expect(lastEvent(Buffer.from(body), lost)).toBeNull());

  it("follows whole events only, however the stream was cut into pieces", () => {
    const isBetween = (...pieces: string[]) => {
      const events = new EventFollower();
      for (const piece of pieces) events.follow(Buffer.from(piece));
      return events.isBetweenEvents;
    };
    expect([isBetween(), isBetween("data: 1\n\n"), isBetween("data: 1\n", "\n"), isBetween("data: 1\r", "\n\r", "\n")]).not.toContain(
      false,
    );
    expect([isBetween("d"), isBetween("data: 1\n"), isBetween("data: 1\r\n"), isBetween("data: 1\n\n", "data: 2")]).not.toContain(true);
    expect(isEventStream("text/event-stream; charset=utf-8", undefined)).toBe(true);
    expect([isEventStream("text/event-stream", "gzip"), isEventStream("application/json", undefined)]).toEqual([false, false]);
  });
});

describe.each(Object.entries(paths))("a client whose sandbox is lost within an event stream, on the %s path,", (_, open) => {
  const call = (url: string, body = JSON.stringify(request)) => {
    const sent = open(url + PATH, { method: "POST", headers: { "content-type": "application/json", "content-length": body.length } });
    sent.end(body);
    return responseOf(sent);
  };

  it.each([[[]], [[": ping\n\n"]], [[": ping\n\n", 'event: message\ndata: {"method":"notifications/progress"}\n\n']]])(
    "gets an error for its request as the last event, after %j",
    async (pieces) => {
      await using gateway = await openGateway(dying(...pieces));
      const answer = await call(gateway.url);
      expect(answer.statusCode).toBe(200);
      const text = await textOf(answer);
      expect(text.startsWith(pieces.join(""))).toBe(true);
      expect(errorIn(text)).toMatchObject({ id: "call-7", error: { data: { code: "sandbox.lost" } } });
      await vi.waitUntil(() => gateway.calls.length === 1);
      expect(gateway.calls).toMatchObject([{ status: 200, end: "lost" }]);
      expect(gateway.faults).toMatchObject([{ of: "sandbox", code: "sandbox.lost" }]);
    },
  );

  it("gets the reason if the instance has failed meanwhile, and the same code", async () => {
    await using gateway = await openGateway((received, response) => {
      void gateway.change({ status: "Failed", reason: "it ran out of memory" }).then(() => dying()(received, response));
    });
    const { error } = errorIn(await textOf(await call(gateway.url)));
    expect(error).toMatchObject({ message: expect.stringContaining("it ran out of memory"), data: { code: "sandbox.lost" } });
  });

  it.each([
    ["in the middle of an event", ["data: {"], JSON.stringify(request)],
    ["after a request without an id", [": ping\n\n"], '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
  ])("sees a broken stream %s", async (_case, pieces, body) => {
    await using gateway = await openGateway(dying(...pieces));
    await expect(textOf(await call(gateway.url, body))).rejects.toThrow();
  });
});

it("a client whose sandbox was lost within an event stream can use its connection for the next call", async () => {
  await using gateway = await openGateway(dying());
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<unknown>();
  for (let turn = 0; turn < 2; turn++) {
    const sent = paths.fast(gateway.url + PATH, { method: "POST", agent });
    sent.end(JSON.stringify(request));
    const answer = await responseOf(sent);
    sockets.add(answer.socket);
    expect(errorIn(await textOf(answer))).toMatchObject({ id: "call-7" });
  }
  expect(sockets.size).toBe(1);
  agent.destroy();
});

/** A sandbox that sends these pieces of a stream, one after the other, and is lost then. */
function dying(...pieces: string[]): RequestListener {
  return async (received, response) => {
    await textOf(received);
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    for (const piece of pieces) await new Promise<void>((resolve) => response.write(piece, () => resolve()));
    response.destroy();
  };
}

function errorIn(stream: string) {
  return JSON.parse(stream.split("data: ").at(-1) ?? "");
}
