import { describe, expect, it } from "vitest";
import { fakeClock } from "../../fixtures/fake-clock.ts";
import { httpServer, type Seen, sendJson, type TestServer } from "../../fixtures/http-server.ts";
import { ValidationError } from "../errors/errors.ts";
import { HubClient } from "./hub-client.ts";

const record = {
  id: "weather-demo-1.0.0",
  name: "weather-demo",
  description: "",
  version: "1.0.0",
  tags: null,
  code_url: "",
  status: 6,
  artifacts: null,
  build_config: { dockerfile: "./Dockerfile" },
  test_config: null,
  deploy_config: { cpu: "1" },
  created_at: "2025-12-08T14:21:04.143332845+08:00",
  updated_at: "2025-12-08T14:21:04.143332845+08:00",
};

/** A hub that answers as the original does: data on success, a message otherwise. */
function hubServer(answer: (seen: Seen) => { data?: unknown; status?: number; message?: string }): Promise<TestServer> {
  return httpServer((seen, response) => {
    const { data = null, status = 200, message = "" } = answer(seen);
    sendJson(response, { success: status === 200, code: status === 200 ? 0 : status, message, data }, status);
  });
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

const ref = "weather-demo@1.0.0";

describe("HubClient", () => {
  it("asks whether a version exists", async () => {
    await using server = await hubServer(({ path }) => ({
      data: path.includes("/1.0.0/") ? { exists: true, status: 6 } : { exists: false },
    }));
    const hub = new HubClient(server.url);
    expect(await hub.exists(ref)).toEqual({ exists: true, status: "Ready" });
    expect(await hub.exists("weather-demo@2.0.0")).toEqual({ exists: false, status: null });
    expect(server.requests[0]?.path).toBe("/env/weather-demo/1.0.0/exists");
  });

  it("gets a version as the hub describes it", async () => {
    await using server = await hubServer(() => ({ data: record }));
    expect(await new HubClient(server.url).get(ref)).toEqual(record);
  });

  it("reports an environment that does not exist", async () => {
    await using server = await hubServer(() => ({ status: 404, message: "Environment not found" }));
    expect(await failure(new HubClient(server.url).get("nope@1.0.0"))).toMatchObject({
      name: "EnvironmentError",
      code: "environment.not_found",
      message: "could not get environment 'nope@1.0.0': Environment not found",
    });
  });

  it("lists a page, with the slash that avoids a redirect, and accepts null as an empty list", async () => {
    await using server = await hubServer(({ query }) => ({ data: query.get("offset") === "0" ? [record] : null }));
    const hub = new HubClient(server.url);
    expect(await hub.list()).toEqual([record]);
    expect(await hub.list({ limit: 5, offset: 5 })).toEqual([]);
    expect(server.requests[1]).toMatchObject({ path: "/env/" });
    expect(server.requests[1]?.query.toString()).toBe("limit=5&offset=5");
  });

  it("publishes once, with name and version from the reference", async () => {
    await using server = await hubServer(() => ({ data: true }));
    await new HubClient(server.url, { apiKey: "secret" }).create(ref, { status: "Ready", deployConfig: { cpu: "1" } });
    expect(server.requests[0]).toMatchObject({
      method: "POST",
      path: "/env/",
      json: { name: "weather-demo", version: "1.0.0", status: "Ready", deployConfig: { cpu: "1" } },
      headers: { authorization: "Bearer secret" },
    });
  });

  it("reports that a version exists, and does not publish again after a failure", async () => {
    await using full = await hubServer(() => ({ status: 409, message: "Environment with same name and version already exists" }));
    expect(await failure(new HubClient(full.url).create(ref, {}))).toMatchObject({ code: "environment.exists" });
    await using broken = await httpServer((_, response) => response.destroy());
    expect(await failure(new HubClient(broken.url, { clock: fakeClock() }).create(ref, {}))).toMatchObject({ name: "NetworkError" });
    expect(broken.requests).toHaveLength(1);
  });

  it("updates, gets the status, and releases", async () => {
    await using server = await hubServer(({ path }) => ({ data: path.endsWith("/status") ? { status: "Released" } : true }));
    const hub = new HubClient(server.url);
    await hub.update(ref, { codeUrl: "x" });
    expect(await hub.status(ref)).toBe("Released");
    await hub.release(ref);
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "PUT /env/weather-demo/1.0.0",
      "GET /env/weather-demo/1.0.0/status",
      "POST /env/weather-demo/1.0.0/release",
    ]);
  });

  it("retries idempotent requests after a temporary failure", async () => {
    let asked = 0;
    await using server = await httpServer((_, response) => {
      if (asked++ === 0) return response.writeHead(503).end();
      return sendJson(response, { success: true, code: 0, message: "", data: record });
    });
    expect(await new HubClient(server.url, { clock: fakeClock() }).get(ref)).toEqual(record);
  });

  it.each(["", "@1.0.0", "a@b@c"])("rejects the reference '%s' before any request", async (bad) => {
    await using server = await hubServer(() => ({ data: record }));
    expect(await failure(new HubClient(server.url).get(bad))).toBeInstanceOf(ValidationError);
    expect(server.requests).toHaveLength(0);
  });

  it("rejects a record and a status that it cannot parse", async () => {
    await using server = await hubServer(() => ({ data: { status: "Odd" } }));
    expect(await failure(new HubClient(server.url).get(ref))).toBeInstanceOf(ValidationError);
    expect(await failure(new HubClient(server.url).status(ref))).toBeInstanceOf(ValidationError);
  });
});

describe("an AEnv hub", () => {
  const digest = `sha256:${"0".repeat(64)}`;

  it("finds the newest version of a name, and lists by name, tag and text", async () => {
    await using server = await hubServer(({ path }) => ({ data: path === "/env/" ? [record] : record }));
    const hub = new HubClient(server.url);
    expect(await hub.get("weather-demo")).toEqual(record);
    await hub.list({ limit: 5, name: "weather-demo", tag: "a&b", query: "sun" });
    const [get, list] = server.requests;
    expect(get?.path).toBe("/env/weather-demo/latest");
    expect(Object.fromEntries(list?.query ?? [])).toEqual({ limit: "5", offset: "0", name: "weather-demo", tag: "a&b", q: "sun" });
  });

  it("lists versions, deletes one or all, and changes the visibility", async () => {
    const version = {
      name: "weather-demo",
      version: "1.0.0",
      owner: "ada",
      publisher: "ada",
      status: "Released",
      visibility: "private",
      sharedWith: [],
      description: "",
      bundleDigest: null,
      createdAt: "2026-01-01T00:00:00Z",
      updatedAt: "2026-01-01T00:00:00Z",
      history: [{ at: "2026-01-01T00:00:00Z", by: "ada", what: "published" }],
    };
    await using server = await hubServer(({ method }) => ({ data: { GET: [version], DELETE: ["1.0.0"] }[method] ?? true }));
    const hub = new HubClient(server.url);
    expect(await hub.versions("weather-demo")).toEqual([version]);
    expect(await hub.delete("weather-demo")).toEqual(["1.0.0"]);
    expect(await hub.delete(ref)).toEqual(["1.0.0"]);
    await hub.setVisibility(ref, { visibility: "shared", sharedWith: ["bob"] });
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /env/weather-demo",
      "DELETE /env/weather-demo",
      "DELETE /env/weather-demo/1.0.0",
      "POST /env/weather-demo/1.0.0/visibility",
    ]);
    expect(server.requests.at(-1)?.json).toEqual({ visibility: "shared", sharedWith: ["bob"] });
  });

  it("uploads a bundle, reports progress, and starts again after a lost connection", async () => {
    let isFirst = true;
    await using server = await httpServer((_, response) => {
      if (isFirst) response.destroy();
      else sendJson(response, { success: true, code: 0, message: "", data: { digest } });
      isFirst = false;
    });
    const told: number[] = [];
    const bytes = new Uint8Array(150_000).fill(65);
    await new HubClient(server.url, { clock: fakeClock() }).uploadBundle(digest, bytes, { onProgress: (count) => told.push(count) });
    expect(server.requests.map(({ text }) => text.length)).toEqual([150_000, 150_000]);
    expect(server.requests[1]).toMatchObject({ method: "PUT", headers: { "content-type": "application/gzip" } });
    expect(told.slice(-3)).toEqual([65_536, 131_072, 150_000]);
  });

  it("reports why an upload was rejected", async () => {
    await using server = await httpServer((_, response) => {
      const error = { code: "quota.exceeded", retryable: false, requestId: "r" };
      sendJson(response, { success: false, code: 413, message: "too much", data: null, error }, 413);
    });
    expect(await failure(new HubClient(server.url).uploadBundle(digest, new Uint8Array(10)))).toMatchObject({
      code: "quota.exceeded",
      message: expect.stringContaining("too much"),
    });
  });

  it("downloads a bundle with its digest, and reports one that ends early", async () => {
    await using server = await httpServer((seen, response) => {
      response.writeHead(200, { "x-digest": digest, "content-length": 6 });
      if (seen.path.includes("broken")) response.write("abc", () => response.destroy());
      else response.end("abcdef");
    });
    const hub = new HubClient(server.url);
    const { bytes, digest: known } = await hub.downloadBundle(ref);
    expect([Buffer.from(bytes).toString(), known]).toEqual(["abcdef", digest]);
    expect(await failure(hub.downloadBundle("broken@1.0.0"))).toMatchObject({ name: "NetworkError", code: "network.failed" });
  });

  it("reports a connection that stalls during an upload or a download", async () => {
    await using server = await httpServer((seen, response) => {
      if (seen.method === "GET") response.writeHead(200, { "content-length": 6 }).write("abc");
    });
    const hub = new HubClient(server.url, { maxRetries: 0 });
    const stalled = { name: "NetworkError", code: "request.timeout", message: expect.stringContaining("stalled") };
    expect(await failure(hub.downloadBundle(ref, { idleTimeoutMs: 50 }))).toMatchObject(stalled);
    expect(await failure(hub.uploadBundle(digest, new Uint8Array(10), { idleTimeoutMs: 50 }))).toMatchObject(stalled);
  });

  it("skips the verification only if told to", async () => {
    await using server = await hubServer(() => ({ data: true }));
    const hub = new HubClient(server.url);
    await hub.create(ref, {});
    await hub.create(ref, { visibility: "public" }, { verify: false });
    expect(server.requests.map(({ query }) => query.get("verify"))).toEqual([null, "false"]);
    expect(server.requests[1]?.json).toEqual({ visibility: "public", name: "weather-demo", version: "1.0.0" });
  });
});
