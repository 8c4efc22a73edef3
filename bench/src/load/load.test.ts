import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startServer } from "../processes/server.ts";
import { toolCall } from "./job.ts";
import { Load } from "./load.ts";

const limits = { turns: 20, ms: 10_000 };

describe("Load", () => {
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.statusCode = request.url === "/broken" ? 500 : 200;
    response.end(`this is ${request.url}`);
  });
  const requests: string[] = [];
  let target: { url: string; cpuUs: () => Promise<number> };

  beforeEach(async () => {
    requests.length = 0;
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    target = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cpuUs: async () => 0 };
  });
  afterEach(() => new Promise((resolve) => void server.close(resolve)));

  it("runs each turn once, with its steps in order", async () => {
    await using load = new Load();
    const step = (path: string) => ({ method: "GET", path, expect: `this is ${path}` }) as const;
    const sample = await load.measure(target, { lanes: 1, steps: [step("/a-{n}"), step("/b-{n}")] }, { turns: 3, ms: 10_000 });
    expect(sample.turns).toBe(3);
    expect(sample.latenciesMs).toHaveLength(3);
    expect(requests).toEqual(["GET /health", "GET /a-0", "GET /b-0", "GET /a-1", "GET /b-1", "GET /a-2", "GET /b-2"]);
  });

  it("divides the turns among its lanes", async () => {
    await using load = new Load();
    const sample = await load.measure(target, { lanes: 4, steps: [{ method: "GET", path: "/{n}", expect: "/{n}" }] }, limits);
    expect(sample.turns).toBe(20);
    expect(requests.filter((one) => one !== "GET /health").sort()).toEqual(Array.from({ length: 20 }, (_, n) => `GET /${n}`).sort());
  });

  it("puts the target's prefix before every path", async () => {
    await using load = new Load();
    const below = { ...target, prefix: "/env-instance/a" };
    await load.measure(below, { lanes: 1, steps: [{ method: "GET", path: "/mcp", expect: "/mcp" }] }, { turns: 1, ms: 10_000 });
    expect(requests).toEqual(["GET /health", "GET /env-instance/a/mcp"]);
  });

  it("fails when an answer is not the expected one", async () => {
    await using load = new Load();
    const request = (path: string, expect: string) => load.measure(target, { lanes: 1, steps: [{ method: "GET", path, expect }] }, limits);
    await expect(request("/fine", "something else")).rejects.toThrow("GET /fine answered 200 without 'something else': this is /fine");
    await expect(request("/broken", "")).rejects.toThrow("GET /broken answered 500");
  });
});

describe("the measured servers", () => {
  const echo = toolCall("echo", { text: "hello" }, '"text":"hello"');

  it("answer the same call with the same text, with and without a session", async () => {
    await using load = new Load();
    await using bare = await startServer(new URL("../kit/servers/bare.ts", import.meta.url));
    await using kit = await startServer(new URL("../kit/servers/kit.ts", import.meta.url), ["hot"]);
    await using sdk = await startServer(new URL("../kit/servers/kit.ts", import.meta.url), ["cold"]);
    for (const server of [bare, kit, sdk]) expect((await load.measure(server, { lanes: 2, steps: [echo] }, limits)).turns).toBe(20);
    expect((await load.measure(kit, { lanes: 2, hasSession: true, steps: [echo] }, limits)).turns).toBe(20);
    expect(await kit.cpuUs()).toBeGreaterThan(0);
    expect((await kit.memory()).heapBytes).toBeGreaterThan(0);
  });
});
