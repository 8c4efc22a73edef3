import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { type ClientRequest, request } from "node:http";
import { createConnection, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type ChildPlatform, startChild } from "./child.ts";
import { archiveOf } from "./fixtures/archives.ts";
import { type Answer, type Platform, projects, publish, startPlatform } from "./platform.ts";
import { fill, routesOf } from "./routes.ts";

const MEBIBYTE = 1024 * 1024;

const answersOn = async (platform: Pick<Platform, "controlUrl" | "dataUrl">) => {
  for (const url of [platform.controlUrl, platform.dataUrl])
    expect((await fetch(`${url}/health`, { headers: { connection: "close" }, signal: AbortSignal.timeout(5_000) })).status).toBe(200);
};

describe("path escapes", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform?.close());

  const escapes = [
    "..",
    "../evil",
    "../../evil",
    "a/../../evil",
    "/etc/evil",
    "a\0b",
    "a\\..\\evil",
    ".",
    "",
    "%2e%2e%2fevil",
    "a".repeat(5_000),
    "evil\n",
    "évil",
    "-evil",
    "EVIL",
  ];

  it("in names and versions are refused on every route that takes a name, and write nothing", async () => {
    const before = readdirSync(platform.home).sort();
    for (const evil of escapes) {
      const coded = encodeURIComponent(evil);
      const version = evil === "" || /^[a-zA-Z]/.test(evil) ? `${evil}@` : evil;
      const asked: [string, string, unknown?][] = [
        ["POST", "/env", { name: evil, version: "1.0.0", artifacts: [{ type: "image", content: "x" }] }],
        ["POST", "/env", { name: "fine", version, artifacts: [{ type: "image", content: "x" }] }],
        ["PUT", `/env/${coded}/1.0.0`, { status: "Ready" }],
        ["POST", `/env/${coded}/1.0.0/sign`, {}],
        ["GET", `/env/${coded}/1.0.0/bundle`],
        ["PUT", `/bundle/${coded}`, Buffer.from("x")],
        ["PUT", `/transfer/${coded}`, Buffer.from("x")],
        ["POST", "/env-instance", { envName: `${evil}@1.0.0` }],
        ["GET", `/env-instance/${coded}`],
        ["DELETE", `/env-instance/${coded}/`],
      ];
      for (const [method, path, body] of asked) {
        const answer = await platform.ask(method, path, body);
        expect([method, path, body, answer.success]).toEqual([method, path, body, false]);
        expect(answer.status).toBeGreaterThanOrEqual(400);
        expect(answer.status).toBeLessThan(500);
      }
    }
    expect(readdirSync(platform.home).sort()).toEqual(before);
    expect(readdirSync(dirname(platform.home)).filter((name) => name === "evil")).toEqual([]);
  });

  it.each([
    ["a file above the folder", [{ path: "../evil.txt", text: "x" }]],
    ["a file far above the folder", [{ path: "a/../../../../evil.txt", text: "x" }]],
    ["an absolute path", [{ path: "/tmp/evil.txt", text: "x" }]],
    ["a symbolic link", [{ path: "main.js", type: "2", link: "/etc/passwd" }]],
    ["a hard link", [{ path: "main.js", type: "1", link: "/etc/passwd" }]],
    [
      "a file through a link",
      [
        { path: "out", type: "2", link: ".." },
        { path: "out/evil.txt", text: "x" },
      ],
    ],
    ["a device", [{ path: "main.js", type: "3" }]],
    ["a backslash", [{ path: "..\\evil.txt", text: "x" }]],
  ])("in archives are refused: %s", async (_, entries) => {
    const { digest, bytes } = archiveOf([...entries, { path: "manifest.json", text: "{}" }]);
    const uploaded = await platform.ask("PUT", `/bundle/${digest}`, bytes);
    const published = uploaded.success
      ? await platform.ask("POST", "/env", { name: "evil", version: "1.0.0", artifacts: [{ type: "bundle", content: digest }] })
      : uploaded;
    expect(published).toMatchObject({ success: false, status: 400, error: { code: "bundle.invalid" } });
    for (const folder of [platform.home, dirname(platform.home), join(platform.home, "bundles"), "/tmp"])
      expect(existsSync(join(folder, "evil.txt"))).toBe(false);
    expect((await platform.ask("GET", "/env/evil/1.0.0")).status).toBe(404);
  });
});

describe("the memory of a server", () => {
  let child: ChildPlatform;
  let instanceId: string;
  beforeAll(async () => {
    child = await startChild({ logLevel: "warn" });
    instanceId = (await child.create(await publish(child, projects.probe))).id;
    await callTool(urlOf(child, instanceId), "count");
  });
  afterAll(() => child?.close());

  it("does not grow with a decompression bomb", { timeout: 60_000 }, async () => {
    // 4 GiB of zeros, 4 MiB compressed.
    const member = gzipSync(Buffer.alloc(64 * MEBIBYTE));
    const bomb = Buffer.concat(Array.from({ length: 64 }, () => member));
    const before = child.peakMb() ?? 0;
    const files = filesIn(join(child.home, "blobs"));
    const answer = await child.ask("PUT", `/bundle/sha256:${"0".repeat(64)}`, bomb);
    expect(answer).toMatchObject({ success: false, status: 400, error: { code: "bundle.invalid" } });
    const link = String(await child.demand("POST", "/env/bomb/1.0.0/sign"));
    expect(await child.ask("PUT", new URL(link).pathname, bomb)).toMatchObject({ success: false, status: expect.toBeOneOf([400, 413]) });
    expect((child.peakMb() ?? 0) - before).toBeLessThan(150);
    expect(filesIn(join(child.home, "blobs"))).toEqual(files);
    await answersOn(child);
  });

  it("grows little with a body of a gibibyte, streamed or refused", { timeout: 120_000 }, async () => {
    const before = child.peakMb() ?? 0;
    const noise = randomBytes(MEBIBYTE);
    const json = { "content-type": "application/json" };
    const gzip = { "content-type": "application/gzip" };
    const asked = [
      { url: urlOf(child, instanceId), method: "POST", headers: json, expected: [413] },
      { url: urlOf(child, instanceId, "/functions/print"), method: "POST", headers: json, expected: [413] },
      { url: urlOf(child, "probe-nobody"), method: "POST", headers: json, expected: [404] },
      { url: `${child.controlUrl}/env`, method: "POST", headers: json, expected: [413] },
      { url: `${child.controlUrl}/nowhere`, method: "POST", headers: gzip, expected: [404] },
      // Stored without compression, so that all of it is read before it is refused.
      {
        url: `${child.controlUrl}/bundle/sha256:${"1".repeat(64)}`,
        method: "PUT",
        headers: gzip,
        expected: [400, 413],
        first: storedGzip(),
        piece: storedBlock(noise),
      },
    ];
    for (const { url, method, headers, expected, first, piece = noise } of asked) {
      const { status, sent } = await pour(url, { method, headers }, 1024, piece, first);
      expect([url, status]).toEqual([url, expect.toBeOneOf(expected)]);
      expect(sent).toBeLessThanOrEqual(1024 + 1);
    }
    expect((child.peakMb() ?? 0) - before).toBeLessThan(200);
    expect((await callTool(urlOf(child, instanceId), "count")).status).toBe(200);
    await answersOn(child);
  });
});

describe("a server that requires tokens", () => {
  it("does not buffer the body of a client without one", { timeout: 60_000 }, async () => {
    await using child = await startChild({ access: "on", logLevel: "warn" });
    const before = child.peakMb() ?? 0;
    const headers = { "content-type": "application/json" };
    const piece = Buffer.alloc(MEBIBYTE, " ");
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => pour(`${child.controlUrl}/env-instance`, { method: "POST", headers }, 60, piece)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(401));
    expect((child.peakMb() ?? 0) - before).toBeLessThan(100);
    await answersOn(child);
  });
});

describe("slow loris", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { headersTimeout: "700ms", requestTimeout: "1400ms" } });
  });
  afterAll(() => platform?.close());

  it.each(["controlUrl", "dataUrl"] as const)("is disconnected on the %s in every phase of a request", async (port) => {
    const url = new URL(platform[port]);
    const ways = {
      nothing: [],
      "the first line": [..."GET /health HTTP/1.1".repeat(9)],
      headers: ["GET /health HTTP/1.1\r\nHost: localhost\r\n", ...Array.from({ length: 100 }, (_, n) => `X-${n}: 1\r\n`)],
      "a body": [
        "POST /env HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
        ...Array(100).fill("{"),
      ],
      chunks: ["POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", ...Array(100).fill("1\r\n{\r\n")],
    };
    await Promise.all(
      Object.entries(ways).map(async ([what, pieces]) => {
        const socket = createConnection(Number(url.port), url.hostname).on("error", () => {});
        const began = performance.now();
        socket.resume();
        // Not `once` of node:events, which fails if the server resets the connection.
        const closed = new Promise((resolve) => socket.once("close", resolve));
        const dawdle = (async () => {
          for (const piece of pieces) {
            if (socket.destroyed) return;
            socket.write(piece);
            await pause(100);
          }
        })();
        await closed;
        expect([what, performance.now() - began < 5_000]).toEqual([what, true]);
        await dawdle;
      }),
    );
    await answersOn(platform);
  });

  it("does not affect a tool call that takes longer than the request timeout", async () => {
    const { id } = await platform.create(await publish(platform, projects.probe));
    expect((await callTool(urlOf(platform, id), "wait", { ms: 1_900 })).text).toBe("waited");
  });
});

const openFiles = Number(execFileSync("/bin/sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).trim().replace("unlimited", "1000000"));
const CONNECTIONS = 10_000;

describe.skipIf(openFiles < CONNECTIONS + 2_000)(
  `ten thousand idle connections${openFiles < CONNECTIONS + 2_000 ? ` (needs open files: only ${openFiles} are allowed here)` : ""}`,
  () => {
    it("are accepted on both ports up to the limit, and the server still responds", { timeout: 120_000 }, async () => {
      await using child = await startChild(
        { maxConnections: CONNECTIONS + 200, headersTimeout: "5m", logLevel: "warn" },
        CONNECTIONS + 2_000,
      );
      const { id } = await child.create(await publish(child, projects.probe));
      const before = child.peakMb() ?? 0;
      for (const url of [child.dataUrl, child.controlUrl]) {
        const sockets = await connectMany(url, CONNECTIONS);
        try {
          expect(sockets.filter((socket) => !socket.destroyed)).toHaveLength(CONNECTIONS);
          await answersOn(child);
          expect((await callTool(urlOf(child, id), "count")).status).toBe(200);
          const more = await connectMany(url, 400);
          sockets.push(...more);
          await vi.waitFor(() => expect(more.filter((socket) => !socket.destroyed).length).toBeLessThanOrEqual(200), { timeout: 10_000 });
        } finally {
          for (const socket of sockets) socket.destroy();
        }
        await vi.waitFor(() => answersOn(child), { timeout: 10_000 });
      }
      expect((child.peakMb() ?? 0) - before).toBeLessThan(500);
    });
  },
);

describe("garbage", () => {
  let platform: Platform;
  let id: string;
  beforeAll(async () => {
    platform = await startPlatform();
    id = (await platform.create(await publish(platform, projects.probe))).id;
  });
  afterAll(() => platform?.close());

  const word = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.constantFrom("__proto__", "constructor", "toString", "\0", "\ud800", "a".repeat(3_000)),
  );
  const json = fc.oneof(
    fc.jsonValue({ noUnicodeString: false }),
    fc.dictionary(
      fc.oneof(
        word,
        fc.constantFrom(
          "envName",
          "name",
          "version",
          "ttl",
          "labels",
          "task",
          "seed",
          "count",
          "artifacts",
          "snapshot",
          "wait",
          "requests",
          "owner",
          "roles",
          "environment_variables",
          "arguments",
          "deployConfig",
        ),
      ),
      fc.oneof(word, fc.jsonValue(), fc.double(), fc.integer()),
    ),
  );
  const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
  const headers = fc.dictionary(
    fc
      .oneof(
        fc.stringMatching(/^[a-z][a-z-]{0,15}$/),
        fc.constantFrom(
          "authorization",
          "x-request-id",
          "idempotency-key",
          "env-instance-trace-id",
          "traceparent",
          "accept",
          "origin",
          "content-type",
          "aenvcore-envinstance-id",
          "aenvcore-mcpproxy-url",
        ),
      )
      .filter(
        (name) =>
          token.test(name) &&
          !["host", "connection", "content-length", "transfer-encoding", "expect", "upgrade", "trailer", "te", "keep-alive"].includes(name),
      ),
    fc.string({ maxLength: 60 }).map((text) => text.replace(/[^\x20-\x7e]/g, "?")),
    { maxKeys: 5 },
  );

  it("as JSON and headers gets a client error on every route, never an internal error", { timeout: 120_000 }, async () => {
    const routes = (await routesOf(platform)).filter(
      ({ method, path }) => !(method === "DELETE" && path === "/env-instance/{id}") && !path.endsWith("/logs"),
    );
    for (const { method, path } of routes) {
      await fc.assert(
        fc.asyncProperty(
          json,
          headers,
          fc.dictionary(word, word, { maxKeys: 4 }),
          fc.oneof(word, fc.constant(id)),
          async (body, more, query, name) => {
            const values = { id: name, name, version: name, digest: name, ticket: name };
            const search = new URLSearchParams(mapValues(query, (value) => value.toWellFormed()));
            const target = wellFormed(
              fill(
                path,
                mapValues(values, (value) => value.toWellFormed()),
              ),
            );
            const answer = await send(
              `${platform.controlUrl}${target}?${search}`,
              method,
              { "content-type": "application/json", ...more },
              JSON.stringify(body),
            );
            expectClean(`${method} ${path}`, answer);
          },
        ),
        { numRuns: 25 },
      );
    }
    expect((await callTool(urlOf(platform, id), "count")).status).toBe(200);
  });

  it("that is not JSON, or nested too deeply, is refused on every route with a body", { timeout: 60_000 }, async () => {
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    const nested = `{"envName":"probe","snapshot":${deep},"metadata":${deep},"environment_variables":{}}`;
    for (const { method, path } of await routesOf(platform)) {
      if (method === "GET" || (method === "DELETE" && path === "/env-instance/{id}")) continue;
      for (const body of ["{", "nul", '{"a":', "\u0000", deep, nested, '{"__proto__":{"x":1}}', `"${"x".repeat(100_000)}"`]) {
        const answer = await send(
          `${platform.controlUrl}${fill(path, { id, name: "probe", version: "1.0.0" })}`,
          method,
          { "content-type": "application/json" },
          body,
        );
        expectClean(`${method} ${path} ${body.slice(0, 20)}`, answer);
      }
      for (const type of ["text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-16", "a/b/c", ";"]) {
        const answer = await send(
          `${platform.controlUrl}${fill(path, { id, name: "probe", version: "1.0.0" })}`,
          method,
          { "content-type": type },
          "{}",
        );
        expectClean(`${method} ${path} ${type}`, answer);
      }
    }
  });

  it("on the data port is refused or passed to the sandbox, and breaks neither", { timeout: 60_000 }, async () => {
    const path = fc.oneof(
      fc.constantFrom("/mcp", `/env-instance/${id}/mcp`, `/env-instance/${id}/functions/print`, `/env-instance/${id}/task/reset`, "/sse"),
      word.map((text) => `/${encodeURIComponent(text.toWellFormed())}`),
    );
    await fc.assert(
      fc.asyncProperty(
        path,
        headers,
        json,
        fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"),
        async (target, more, body, method) => {
          const signal = AbortSignal.timeout(3_000);
          const text = method === "GET" ? undefined : JSON.stringify(body);
          const answer = await send(platform.dataUrl + target, method, { "content-type": "application/json", ...more }, text, signal);
          expect([target, answer.status]).not.toEqual([target, expect.toBeOneOf([502, 503, 504])]);
        },
      ),
      { numRuns: 200 },
    );
    expect((await callTool(urlOf(platform, id), "count")).status).toBe(200);
  });

  it.each(["controlUrl", "dataUrl"] as const)("that is not HTTP is refused on the %s", async (port) => {
    const url = new URL(platform[port]);
    const lines = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.constantFrom(
        "GET / HTTP/9.9\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"a".repeat(100_000)}\r\n\r\n`,
        "GET /\u0001 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\u0000b\r\n\r\n",
        "GET / HTTP/1.1\r\n Folded: yes\r\n\r\n",
        "GET /%zz%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "BREW /coffee HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "\u0016\u0003\u0001\u0002\u0000\u0001",
      ),
    );
    await fc.assert(
      fc.asyncProperty(lines, async (bytes) => {
        const socket = createConnection(Number(url.port), url.hostname).on("error", () => {});
        socket.end(bytes);
        let answer = "";
        socket.setEncoding("latin1").on("data", (text: string) => {
          answer += text;
        });
        // The server may close the connection without reading the rest.
        await new Promise((resolve) => socket.once("close", resolve));
        if (answer !== "") expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
      }),
      { numRuns: 100 },
    );
    await answersOn(platform);
  });
});

function expectClean(what: string, answer: Answer): void {
  // Success or a client error; 501 means that this environment does not support the request.
  expect([what, answer.message, answer.status]).toEqual([
    what,
    answer.message,
    expect.toSatisfy((status: number) => status < 500 || status === 501),
  ]);
  expect(answer.error?.code).not.toBe("internal");
}

async function send(
  url: string,
  method: string,
  headers: Record<string, string>,
  body: string | undefined,
  signal?: AbortSignal,
): Promise<Answer> {
  const hasBody = body !== undefined && method !== "GET";
  const response = await fetch(url, { method, headers, ...(hasBody && { body }), ...(signal && { signal }) });
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const text = isStream ? "" : await response.text();
  if (isStream) await response.body?.cancel();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = { message: text };
  }
  return { ...(value as Answer), status: response.status, headers: response.headers };
}

/** Sends chunks until all are sent or a response arrives. */
async function pour(
  url: string,
  options: { method: string; headers: Record<string, string> },
  times: number,
  piece: Buffer,
  first?: Buffer,
): Promise<{ status: number; sent: number }> {
  const sent: ClientRequest = request(url, { ...options, agent: false });
  const answered = once(sent, "response");
  let isAnswered = false;
  let count = 0;
  sent.on("error", () => {});
  answered.then(
    () => (isAnswered = true),
    () => (isAnswered = true),
  );
  if (first !== undefined) sent.write(first);
  while (count < times && !isAnswered && !sent.destroyed) {
    count++;
    if (!sent.write(piece)) await Promise.race([once(sent, "drain").catch(() => {}), answered.catch(() => {})]);
  }
  if (!isAnswered) sent.end();
  const [response] = await answered;
  response.resume();
  sent.destroy();
  return { status: response.statusCode, sent: count };
}

/** The header of a gzip file, and a stored (uncompressed) block. */
function storedGzip(): Buffer {
  return Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
}

function storedBlock(bytes: Buffer): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000) {
    const part = bytes.subarray(at, at + 0x8000);
    const head = Buffer.from([0, 0, 0, 0, 0]);
    head.writeUInt16LE(part.length, 1);
    head.writeUInt16LE(~part.length & 0xffff, 3);
    blocks.push(head, part);
  }
  return Buffer.concat(blocks);
}

/**
 * The server has accepted all of them. On a busy machine more connections could wait than its system lets wait; then the last packet of a
 * handshake is dropped, and this side takes a connection for open of which the server knows nothing.
 */
async function connectMany(url: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(100, count - sockets.length) }, () =>
      createConnection(Number(port), hostname).on("error", () => {}),
    );
    for (const socket of some) socket.resume();
    await Promise.all(some.map((socket) => Promise.race([once(socket, "connect"), once(socket, "close")])));
    sockets.push(...some);
    await acceptedAll(url);
  }
  return sockets;
}

/** Resolves when the server has answered on a new connection, or refused it: those before it were accepted. */
async function acceptedAll(url: string): Promise<void> {
  const asked = request(url, { agent: false });
  asked.on("response", (response) => response.resume()).on("error", () => {});
  asked.end();
  await new Promise((resolve) => asked.once("close", resolve));
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function mapValues(values: Record<string, string>, change: (value: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key.toWellFormed(), change(value)]));
}

function wellFormed(path: string): string {
  return path.replace(/\/\.{1,2}(?=\/|$)/g, "/x");
}
