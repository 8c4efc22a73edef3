import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { startApp } from "./fixtures/app.ts";
import { bodyLimits, route } from "./route.ts";

const handled = vi.fn(async ({ body }: { body: unknown }) => body);
const routes = [
  route({
    method: "POST",
    path: "/notes",
    summary: "takes a note",
    answer: z.unknown(),
    tag: "operations",
    roles: ["trainer"],
    body: z.object({ text: z.string() }),
    maxBodyBytes: 1_000,
    handle: handled,
  }),
  route({
    method: "PUT",
    path: "/archive",
    summary: "takes an archive",
    answer: { type: "application/json" },
    tag: "operations",
    roles: ["publisher"],
    maxBodyBytes: bodyLimits.archive,
    isRaw: true,
    handle: async ({ reply }) => reply.send({ success: true }),
  }),
  route({
    method: "GET",
    path: "/notes",
    summary: "lists notes",
    answer: z.array(z.string()),
    tag: "operations",
    roles: ["admin"],
    handle: async () => [],
  }),
];

const json = ["Host: localhost", "Content-Type: application/json"];
const wrong = "Authorization: Bearer aenv_0123456789ab_zqWrongTokenzqWrongToken123";

describe("a request without the right to its route", () => {
  it.each([
    ["declares a body", "Content-Length: 500", ""],
    ["declares a body that is too large", "Content-Length: 99999999", ""],
    ["sends chunks", "Transfer-Encoding: chunked", "5\r\nhello\r\n"],
    ["asks whether to go on", "Content-Length: 500\r\nExpect: 100-continue", ""],
  ])("is answered before its body is sent, and told that the connection closes: %s", async (_, length, begun) => {
    await using app = await startApp(routes);
    const { token } = await app.tokens.create({ owner: "ada", roles: ["agent"] });
    for (const [authorization, status] of [
      ["X-Nothing: here", "401 Unauthorized"],
      [wrong, "401 Unauthorized"],
      [`Authorization: Bearer ${token}`, "403 Forbidden"],
    ]) {
      const connection = app.connect().send("POST /notes HTTP/1.1", ...json, authorization ?? "", length, "", begun);
      const answer = await connection.says(/"requestId"/);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status}\r\n`));
      expect(answer.toLowerCase()).toContain("connection: close");
    }
    expect(handled).not.toHaveBeenCalled();
  });

  it("does not keep its connection open by sending nothing, or by sending without end", async () => {
    await using app = await startApp(routes);
    const silent = app.connect().send("POST /notes HTTP/1.1", ...json, "Content-Length: 500", "", "");
    const endless = app.connect().send("POST /notes HTTP/1.1", ...json, "Transfer-Encoding: chunked", "", "");
    const piece = `1000\r\n${"x".repeat(4_096)}\r\n`;
    const pour = () => {
      if (!endless.socket.destroyed) endless.socket.write(piece, () => setImmediate(pour));
    };
    pour();
    for (const answer of await Promise.all([silent.closed(), endless.closed()])) expect(answer).toMatch(/^HTTP\/1.1 401 /);
  });

  it("is refused on uploads and HEAD alike, and an unknown path is not revealed", async () => {
    await using app = await startApp(routes);
    const upload = app.connect().send("PUT /archive HTTP/1.1", "Host: localhost", "Content-Length: 1000000", "", "");
    expect(await upload.says(/"requestId"/)).toMatch(/^HTTP\/1.1 401 /);
    const head = app.connect().send("HEAD /notes HTTP/1.1", "Host: localhost", "Connection: close", "", "");
    expect(await head.closed()).toMatch(/^HTTP\/1.1 401 /);
    const nowhere = app.connect().send("POST /nowhere HTTP/1.1", ...json, "Content-Length: 100", "", "");
    expect(await nowhere.says(/"requestId"/)).toMatch(/^HTTP\/1.1 404 [\s\S]*route.not_found/);
  });

  it("can read the response even if it keeps sending", async () => {
    await using app = await startApp(routes);
    const connection = app.connect().send("POST /notes HTTP/1.1", ...json, "Content-Length: 3000000", "", "x".repeat(3_000_000));
    expect(await connection.closed()).toMatch(/^HTTP\/1.1 401 [\s\S]*access.unauthenticated/);
  });
});

describe("a body", () => {
  it("with a content-length above the route's limit is refused at once", async () => {
    await using app = await startApp(routes);
    const { token } = await app.tokens.create({ owner: "ada", roles: ["admin"] });
    const authorization = `Authorization: Bearer ${token}`;
    for (const line of ["POST /notes", "PUT /archive", "GET /notes"]) {
      const length = line.startsWith("PUT") ? bodyLimits.archive + 1 : bodyLimits.none + 1;
      const connection = app.connect().send(`${line} HTTP/1.1`, ...json, authorization, `Content-Length: ${length}`, "", "");
      expect(await connection.says(/"requestId"/)).toMatch(/^HTTP\/1.1 413 [\s\S]*request.too_large/);
    }
    expect(handled).not.toHaveBeenCalled();
  });

  it("that is chunked is refused at the limit of its route", async () => {
    await using app = await startApp(routes);
    const { token } = await app.tokens.create({ owner: "ada", roles: ["trainer"] });
    const connection = app.connect();
    connection.send("POST /notes HTTP/1.1", ...json, `Authorization: Bearer ${token}`, "Transfer-Encoding: chunked", "", "");
    // The last chunk never comes.
    connection.send("320", "x".repeat(800), "320", "x".repeat(800), "");
    const answer = await connection.says(/"requestId"/);
    expect(answer).toMatch(/^HTTP\/1.1 413 [\s\S]*larger than 1000 bytes/);
    expect(handled).not.toHaveBeenCalled();
  });

  it("that does not arrive in time is refused", async () => {
    await using app = await startApp(routes, { bodyTimeoutMs: 50 });
    const { token } = await app.tokens.create({ owner: "ada", roles: ["trainer"] });
    const connection = app.connect();
    connection.send("POST /notes HTTP/1.1", ...json, `Authorization: Bearer ${token}`, "Content-Length: 100", "", '{"text":');
    expect(await connection.says(/"requestId"/)).toMatch(/^HTTP\/1.1 408 [\s\S]*request.too_slow/);
    expect(handled).not.toHaveBeenCalled();
  });

  it("with Expect: 100-continue is requested after authorization", async () => {
    await using app = await startApp(routes);
    const { token } = await app.tokens.create({ owner: "ada", roles: ["trainer"] });
    const connection = app.connect();
    const headers = [`Authorization: Bearer ${token}`, "Content-Length: 13", "Expect: 100-continue"];
    connection.send("POST /notes HTTP/1.1", ...json, ...headers, "", "");
    await connection.says(/^HTTP\/1.1 100 Continue/);
    connection.send('{"text":"hi"}');
    expect(await connection.says(/"data"/)).toContain('"data":{"text":"hi"}');
    expect(handled).toHaveBeenCalledOnce();
    handled.mockClear();
  });
});

describe("a page of another origin", () => {
  it.each([
    ["of another local port", "POST", ["Origin: http://localhost:3000"]],
    ["of the same name without its port", "POST", ["Origin: http://localhost"]],
    ["of a sandboxed frame", "POST", ["Origin: null"]],
    ["that says its site only", "POST", ["Sec-Fetch-Site: same-site"]],
    ["that embeds a response", "GET", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"]],
    ["that sends a form", "POST", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]],
  ])("%s is refused before its token is read", async (_, method, headers) => {
    await using app = await startApp(routes);
    const connection = app.connect().send(`${method} /notes HTTP/1.1`, "Host: localhost:8080", ...headers, "Connection: close", "", "");
    expect(await connection.closed()).toMatch(/^HTTP\/1.1 403 [\s\S]*request.forbidden_origin[\s\S]*/);
  });

  it.each([
    ["a page of this server", "POST", ["Origin: http://localhost:8080", "Sec-Fetch-Site: same-origin"]],
    ["an address that is typed", "GET", ["Sec-Fetch-Site: none"]],
    ["a link that is followed", "GET", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]],
  ])("is not %s, which only needs its token", async (_, method, headers) => {
    await using app = await startApp(routes);
    const connection = app.connect().send(`${method} /notes HTTP/1.1`, "Host: localhost:8080", ...headers, "Connection: close", "", "");
    expect(await connection.closed()).toMatch(/^HTTP\/1.1 401 /);
  });
});

describe("a Host", () => {
  it.each([
    ["with user information", ["Host: evil.example@localhost"]],
    ["with a port that is none", ["Host: localhost:abc"]],
    ["that is empty", ["Host:"]],
    ["that comes twice", ["Host: localhost", "Host: evil.example"]],
    ["that comes twice with the good one last", ["Host: evil.example", "host: localhost"]],
    ["of somebody else", ["Host: evil.example"]],
  ])("%s is refused", async (_, hosts) => {
    await using app = await startApp(routes);
    const { token } = await app.tokens.create({ owner: "ada", roles: ["admin"] });
    const connection = app.connect();
    connection.send("GET /notes HTTP/1.1", ...hosts, `Authorization: Bearer ${token}`, "Connection: close", "", "");
    expect(await connection.closed()).toMatch(/^HTTP\/1.1 403 [\s\S]*request.forbidden_origin/);
  });
});
