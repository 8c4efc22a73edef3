import { once } from "node:events";
import type { RequestListener } from "node:http";
import { describe, expect, it, vi } from "vitest";
import { ID, paths, responseOf, textOf } from "./fixtures/gateway.ts";
import { openPort } from "./fixtures/port.ts";

const tell: RequestListener = async (request, response) => {
  const body = await textOf(request);
  response.setHeader("x-more", ["a", "b"]);
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
};

describe.each(Object.entries(paths))("a presigned link on the %s path", (_, open) => {
  const ask = async (url: string, options: Parameters<typeof open>[1] = {}, body?: string) => {
    const sent = open(url, options);
    sent.end(body);
    const answer = await responseOf(sent);
    return { status: answer.statusCode, headers: answer.headers, text: await textOf(answer) };
  };

  it("forwards every method, path, query and body to its port", async () => {
    await using port = await openPort(tell);
    const url = port.url + (await port.link());
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]) {
      const body = method === "GET" || method === "OPTIONS" ? "" : "hello";
      const { status, text } = await ask(`${url}/a%2Fb//c?x=1&y=%20`, { method, headers: { "content-length": body.length } }, body);
      expect([status, JSON.parse(text)]).toMatchObject([200, { method, url: "/a%2Fb//c?x=1&y=%20", body }]);
    }
    for (const [path, seen] of [
      ["", "/"],
      ["/", "/"],
      ["?q", "/?q"],
    ]) {
      expect(JSON.parse((await ask(url + path)).text).url).toBe(seen);
    }
    const head = await ask(url, { method: "HEAD" });
    expect([head.status, head.text, head.headers["x-more"]]).toEqual([200, "", "a, b"]);
    expect(new Set(port.dialled)).toEqual(new Set([3000]));
  });

  it("shows the program its own host and no headers for the platform", async () => {
    await using port = await openPort(tell);
    const { text } = await ask(port.url + (await port.link()), {
      headers: {
        authorization: "Bearer aenv_0123456789ab_secret",
        cookie: "other=secret",
        origin: port.url,
        "aenvcore-envinstance-id": "someone",
        "aenvcore-mcpproxy-url": "http://someone:8081",
        "x-hop": "secret",
        connection: "keep-alive, x-hop",
        "x-own": "kept",
      },
    });
    const { headers } = JSON.parse(text);
    expect(headers).toMatchObject({ host: "127.0.0.1:3000", origin: "http://127.0.0.1:3000", "x-own": "kept" });
    expect(text).not.toContain("secret");
    expect(text).not.toContain("someone");
    const own = await ask(port.url + (await port.link()), { headers: { authorization: "Bearer of-the-program" } });
    expect(JSON.parse(own.text).headers.authorization).toBe("Bearer of-the-program");
  });

  it("is taken at its own host name too, where every path is one of its program, and at no other name", async () => {
    await using port = await openPort(tell, { linkUrl: "https://*.links.example" });
    const token = (await port.link()).slice("/port/".length);
    for (const host of [`${token}.localhost:1234`, `${token.toUpperCase()}.localhost`, `${token}.links.example`]) {
      for (const path of ["/", "/health", "/openenv/x", "/port/x", `/env-instance/${ID}/mcp`, "//a%2Fb?x=1"]) {
        const headers = { host, origin: `http://${host}`, cookie: "session=own", "aenvcore-envinstance-id": ID };
        const { status, text } = await ask(port.url, { path, headers });
        expect([status, JSON.parse(text)]).toMatchObject([
          200,
          { url: path, headers: { host: "127.0.0.1:3000", origin: "http://127.0.0.1:3000", cookie: "session=own" } },
        ]);
      }
    }
    const other = await ask(port.url, { headers: { host: `${token}.localhost`, origin: "https://evil.example" } });
    expect(JSON.parse(other.text).headers.origin).toBe("https://evil.example");
    for (const [host, code] of [
      [`${"0".repeat(32)}.localhost`, "link.not_found"],
      [`${token}.evil.example`, "request.forbidden_origin"],
      [`x.localhost`, "request.forbidden_origin"],
    ]) {
      const { text } = await ask(port.url, { path: `/env-instance/${ID}/mcp`, headers: { host } });
      expect([host, JSON.parse(text).errorInfo.code]).toEqual([host, code]);
    }
  });

  it("sends a browser that opens a page on to its own host name, if the browser can resolve that", async () => {
    await using port = await openPort(tell);
    const link = await port.link();
    const navigate = { "sec-fetch-mode": "navigate", "sec-fetch-site": "none" };
    const { status, headers } = await ask(`${port.url}${link}/a?b=c`, { headers: { ...navigate, host: "localhost:1234" } });
    expect([status, headers.location]).toEqual([307, `http://${link.slice("/port/".length)}.localhost:1234/a?b=c`]);
    expect((await ask(`${port.url}${link}/a`, { headers: { "sec-fetch-mode": "cors" } })).status).toBe(200);
    expect((await ask(`${port.url}/port/${"0".repeat(32)}`, { headers: navigate })).status).toBe(404);
  });

  it("takes no request for the script of a service worker, and passes on no header that is valid for other links", async () => {
    const wide = { "service-worker-allowed": "/", "clear-site-data": '"*"', "alt-svc": "x", "strict-transport-security": "max-age=9" };
    await using port = await openPort((_, response) => void response.writeHead(200, wide).end("script"));
    const link = await port.link();
    for (const [path, host] of [
      [link, "localhost"],
      ["/", `${link.slice("/port/".length)}.localhost`],
    ]) {
      const { status, headers } = await ask(port.url, { path, headers: { host } });
      expect([status, Object.keys(headers).filter((name) => name in wide)]).toEqual([200, []]);
      const refused = await ask(port.url, { path, headers: { host, "service-worker": "script" } });
      expect([refused.status, JSON.parse(refused.text).errorInfo.code]).toEqual([403, "access.denied"]);
    }
  });

  it("keeps redirects below itself, also behind a public URL with a path", async () => {
    await using port = await openPort((_, response) => void response.writeHead(302, { location: "/login" }).end(), { publicPath: "/data" });
    const link = await port.link();
    const { status, headers } = await ask(`${port.url}${link}/`);
    expect([status, headers.location]).toEqual([302, `/data${link}/login`]);
  });

  it("is answered with 502 while nothing listens, without details of the sandbox", async () => {
    await using port = await openPort(null);
    const { status, headers, text } = await ask(port.url + (await port.link()));
    expect([status, headers["retry-after"]]).toEqual([502, "1"]);
    expect(text).toMatch(/sandbox\.port_closed/);
    expect(text).toMatch(/nothing in the sandbox listens on port 3000/);
    expect(text).not.toContain("sandbox-secret");
  });

  it("is answered with 502 when the program disconnects", async () => {
    await using port = await openPort((request) => void request.socket.destroy());
    expect(await ask(port.url + (await port.link()))).toMatchObject({ status: 502, text: expect.stringMatching(/sandbox\.lost/) });
  });

  it("is refused when it is unknown, expired, of an instance that has ended, or of an earlier instance with the same id", async () => {
    let now = new Date("2026-01-01T00:00:00.000Z");
    await using port = await openPort(tell, { now: () => now });
    const rows = [
      await port.put({ id: "one-that-ended", status: "Terminated", agentKey: "k2" }),
      { ...(await port.put({ id: "one-again", agentKey: "k3" })), createdAt: "2025-01-01T00:00:00.000Z" },
      await port.put({
        id: "one-packed",
        agentKey: "k4",
        slot: { ...(await port.put({ id: "x", agentKey: "k5" })).slot, isOwnSandbox: false } as never,
      }),
      { id: "never-was", createdAt: "" },
    ];
    const links = await Promise.all(rows.map(async (row) => (await port.links.issue(row, { port: 3000 }, 60_000)).token));
    const valid = await port.link();
    for (const token of [...links, "", "unknown", "%2e%2e%2f"]) {
      const { status, text } = await ask(`${port.url}/port/${token}/`);
      expect([token, status, JSON.parse(text).errorInfo.code]).toEqual([token, 404, "link.not_found"]);
      for (const { id } of rows) expect(text).not.toContain(id);
    }
    expect((await ask(port.url + valid)).status).toBe(200);
    now = new Date("2026-01-01T00:01:00.000Z");
    expect((await ask(port.url + valid)).status).toBe(404);
  });

  it("does not reveal the id of an instance that is starting or has failed", async () => {
    await using port = await openPort(tell);
    for (const [status, expected] of [
      ["Creating", 503],
      ["Failed", 502],
    ] as const) {
      const row = await port.put({ id: `secret-${status.toLowerCase()}`, status, agentKey: status, slot: null });
      const { token } = await port.links.issue(row, { port: 3000 }, 60_000);
      const answer = await ask(`${port.url}/port/${token}/`);
      expect(answer.status).toBe(expected);
      expect(answer.text).not.toContain("secret-");
    }
  });

  it("aborts calls in flight when it expires", async () => {
    const now = new Date();
    await using port = await openPort((_, response) => void response.write("begun"), { now: () => now });
    const sent = open(port.url + (await port.link(300)));
    sent.end();
    const answer = await responseOf(sent);
    await expect(textOf(answer)).rejects.toThrow("aborted");
    await vi.waitUntil(() => port.calls.length === 1);
    expect(port.calls[0]).toMatchObject({ api: "port", end: "expired" });
  });

  it("streams in both directions without buffering, and frees everything when the client disconnects", async () => {
    let isFreed = false;
    await using port = await openPort((request, response) => {
      request.on("error", () => {}).pipe(response);
      response.on("close", () => {
        isFreed = true;
      });
    });
    const sent = open(port.url + (await port.link()), { method: "POST" });
    sent.write("one");
    const answer = await responseOf(sent);
    expect(String((await once(answer, "data"))[0])).toBe("one");
    const two = once(answer, "data");
    sent.write("two");
    expect(String((await two)[0])).toBe("two");
    answer.on("error", () => {});
    sent.destroy();
    await vi.waitUntil(() => isFreed);
    await vi.waitUntil(() => port.calls.length === 1);
    expect(port.calls[0]).toMatchObject({ api: "port", end: "left", instanceId: ID });
  });
});
