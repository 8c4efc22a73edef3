import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { queryObjects } from "node:v8";
import { readBoundedText } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { LimitReached } from "../player/limits.ts";
import { ModelHttp } from "./http.ts";

const never = new AbortController().signal;
const server = createServer();
afterEach(() => {
  server.removeAllListeners("request");
  server.closeAllConnections();
  server.close();
});

async function post(
  answer: (response: ServerResponse, attempt: number) => void,
  { retries = 0, timeoutMs = 10_000, signal = never, onDelay = (_: number) => {} } = {},
) {
  let attempts = 0;
  server.on("request", (_, response: ServerResponse) => answer(response, attempts++));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const pauses: number[] = [];
  const asked: number[] = [];
  const sleep = async (ms: number) => pauses.push(ms);
  const http = new ModelHttp({ retries, timeoutMs, onBusy: (ms) => asked.push(ms), sleep });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  try {
    return {
      answer: await http.post(
        { url, headers: {}, body: {} },
        async (body) => JSON.parse(await readBoundedText(body, { maxBytes: Number.POSITIVE_INFINITY })),
        signal,
        onDelay,
      ),
      pauses,
      asked,
    };
  } catch (error) {
    return { error, pauses, asked };
  } finally {
    await http.close();
  }
}

/** Busy once, then an answer. */
const busyWith = (status: number, headers: Record<string, string>) => (response: ServerResponse, attempt: number) =>
  attempt === 0 ? response.writeHead(status, headers).end() : response.end("{}");

describe("a busy endpoint", () => {
  it.each([429, 503])("with status %i is waited for as many seconds as it asks for, and the caller is told", async (status) => {
    expect(await post(busyWith(status, { "retry-after": "2.5" }))).toEqual({ answer: {}, pauses: [2_500], asked: [2_500] });
  });

  it("is waited for until the date that it names", async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    const { pauses } = await post(busyWith(429, { "retry-after": date }));
    expect(pauses).toHaveLength(1);
    expect(pauses[0]).toBeGreaterThan(30_000);
    expect(pauses[0]).toBeLessThanOrEqual(60_000);
  });

  it("is asked again at once if its date is over", async () => {
    expect((await post(busyWith(429, { "retry-after": new Date(0).toUTCString() }))).pauses).toEqual([0]);
  });

  it("that asks for no pause again and again is waited for longer each time", async () => {
    const { pauses } = await post((response, attempt) =>
      attempt < 3 ? response.writeHead(429, { "retry-after": "0" }).end() : response.end("{}"),
    );
    expect(pauses).toEqual([0, 1_000, 2_000]);
  });

  it("that names no time is waited for longer each time", async () => {
    const { answer, pauses } = await post((response, attempt) => (attempt < 3 ? response.writeHead(429).end() : response.end("{}")));
    expect([answer, pauses]).toEqual([{}, [500, 1_000, 2_000]]);
  });
});

describe("the time limit of an agent", () => {
  it("does not count a failed attempt and the pauses", async () => {
    const delays: number[] = [];
    const { pauses } = await post(
      (response, attempt) =>
        attempt === 2 ? response.end("{}") : response.writeHead(attempt === 0 ? 429 : 500, { "retry-after": "3" }).end(),
      { retries: 1, onDelay: (ms) => delays.push(ms) },
    );
    expect(pauses).toEqual([3_000, 500]);
    expect(delays.map((ms, at) => ms >= (pauses[at] as number))).toEqual([true, true]);
  });

  it("that ends while a failed endpoint is asked again is a failure of the endpoint", async () => {
    const time = new AbortController();
    const timeUp = new LimitReached("time_limit", "the agent has had its time");
    const failing = (response: ServerResponse, attempt: number) => (attempt === 0 ? response.writeHead(500).end("{}") : time.abort(timeUp));
    const { error } = await post(failing, { retries: 2, signal: time.signal });
    expect(error).toMatchObject({ name: "ModelError", retryable: true, message: expect.stringContaining("answered 500") });
  });

  it("that ends while the endpoint writes its first answer to a request ends the request", async () => {
    const time = new AbortController();
    const { error } = await post(() => time.abort(new LimitReached("time_limit", "over")), { retries: 2, signal: time.signal });
    expect(error).toMatchObject({ stopReason: "time_limit" });
  });
});

describe("a failing endpoint", () => {
  it("that does not answer in time is a failure that names the time, and may be tried again", async () => {
    const { error, pauses } = await post(() => {}, { timeoutMs: 30, retries: 1 });
    expect(error).toMatchObject({ name: "ModelError", retryable: true, message: expect.stringContaining("did not answer within 0.03 s") });
    expect(pauses).toEqual([500]);
  });

  it("that begins an answer and does not end it in time is the same failure", async () => {
    const { error } = await post((response) => response.write('{"choices":'), { timeoutMs: 50 });
    expect(error).toMatchObject({ retryable: true, message: expect.stringContaining("did not answer within") });
  });

  it.each([
    [500, '{"error":{"message":"overheated"}}', true, "answered 500: overheated"],
    [503, "", true, "answered 503: nothing"],
    [408, "", true, "answered 408: nothing"],
    [409, "", true, "answered 409: nothing"],
    [425, "", true, "answered 425: nothing"],
    [400, '{"error":{"message":"bad","code":"c"}}', false, "answered 400: bad"],
    [404, '{"error":"no such model"}', false, "answered 404: no such model"],
    [401, "<html>who are you", false, "answered 401: <html>who are you"],
  ])("with status %i and %j says so; retryable: %s", async (status, body, retryable, message) => {
    const { error } = await post((response) => response.writeHead(status).end(body));
    expect(error).toMatchObject({ retryable, message: expect.stringContaining(message) });
  });
});

it.each([408, 409, 425, 500, 503])("an endpoint that answers %i is asked again after growing pauses, three times", async (status) => {
  let attempts = 0;
  const refuse = (response: ServerResponse, attempt: number) => {
    attempts = attempt + 1;
    response.writeHead(status).end();
  };
  expect(await post(refuse, { retries: 3 })).toMatchObject({ error: { retryable: true }, pauses: [500, 1_000, 2_000] });
  expect(attempts).toBe(4);
});

describe("a hostile endpoint", () => {
  const MEBIBYTE = Buffer.alloc(1_024 ** 2, "a");

  /** Sends until the client leaves; `sent` counts what the socket took. */
  function endless(response: ServerResponse, sent: { bytes: number }) {
    const send = () => {
      while (!response.destroyed && response.write(MEBIBYTE)) sent.bytes += MEBIBYTE.length;
      sent.bytes += MEBIBYTE.length;
    };
    response.on("drain", send);
    send();
  }

  it("that never ends its answer is left at the limit, and not asked again", async () => {
    const sent = { bytes: 0 };
    const { error, pauses } = await post((response) => endless(response, sent), { retries: 3 });
    expect(error).toMatchObject({ name: "ModelError", retryable: false, message: expect.stringContaining("larger than 33554432 bytes") });
    expect(pauses).toEqual([]);
    expect(sent.bytes).toBeLessThan(100 * 1_024 ** 2);
  });

  it("that never ends an error is left after its beginning, of which the message shows a little", async () => {
    const sent = { bytes: 0 };
    const { error } = await post((response) => endless(response.writeHead(400), sent));
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining("answered 400") });
    expect((error as Error).message.length).toBeLessThan(1_000);
    expect(sent.bytes).toBeLessThan(50 * 1_024 ** 2);
  });

  it.each(["9999999", new Date(Date.now() + 1e11).toUTCString()])(
    "that asks for a pause of %s is waited for ten minutes, not for the millisecond of an overflown timer",
    async (header) => {
      expect(await post(busyWith(429, { "retry-after": header }))).toMatchObject({ answer: {}, pauses: [600_000], asked: [600_000] });
    },
  );
});

// Before: the signals of a request were kept until its timeout was over. A server that played 13,000 rollouts in five minutes had 21,000 of
// them, with 15 MB, and would have had those of the last ten minutes for ever.
it("keeps no signal of a request in memory after its answer", async () => {
  server.on("request", (_, response: ServerResponse) => response.end("{}"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const http = new ModelHttp({ retries: 0, timeoutMs: 600_000 });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const ask = () => http.post({ url, headers: {}, body: {} }, (body) => readBoundedText(body, { maxBytes: 100 }), never);
  await ask();
  const before = queryObjects(AbortSignal) as number;
  for (let n = 0; n < 50; n++) await ask();
  expect(queryObjects(AbortSignal)).toBeLessThan(before + 10);
  await http.close();
});
