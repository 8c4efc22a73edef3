import { describeNeeding, startRedis, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type ServerProcess, startServerProcess } from "./crash/server-process.ts";
import { freePort, type Platform, projects, publish, startPlatform } from "./platform.ts";
import { removeHome } from "./processes.ts";

describe.runIf(process.platform === "linux")("a presigned link", () => {
  let platform: Platform;
  let port: number;
  /** Its config lists the free port, and the ports of the server itself. */
  const ref = "window@1.0.0";
  beforeAll(async () => {
    platform = await startPlatform();
    port = await freePort();
    await publish(platform, projects.window, { ports: [port, portOf(platform.controlUrl), portOf(platform.dataUrl)] });
  });
  afterAll(() => platform?.close());

  const presign = async (id: string, to: number, more: object = {}) => {
    const data = await platform.demand("POST", `/env-instance/${id}/presign-url`, { port: to, ...more });
    return data as { url: string; expires_at: string };
  };

  it("reaches a program in a process sandbox once it listens, until the instance ends", async () => {
    const { id } = await platform.create(ref, { wait: false });
    const { url } = await presign(id, port);
    expect(url).toMatch(new RegExp(`^${platform.dataUrl}/port/[\\w-]{32}$`));
    await platform.demand("GET", `/env-instance/${id}?wait=true`);
    expect((await fetch(url)).status).toBe(502);
    expect(await callTool(urlOf(platform, id), "listen", { port })).toMatchObject({ text: "listening" });
    const answer = await fetch(`${url}/healthz?a=1`, { method: "POST", body: "hello" });
    expect(await answer.json()).toMatchObject({ method: "POST", url: "/healthz?a=1", host: `127.0.0.1:${port}`, body: "hello" });
    expect(await (await fetch(`${url}/away`)).json()).toMatchObject({ url: "/found" });
    await platform.demand("DELETE", `/env-instance/${id}`);
    expect((await fetch(url)).status).toBe(404);
  });

  it("carries a WebSocket to a program in a process sandbox, until the instance ends", async () => {
    const { id } = await platform.create(ref, { environment_variables: { LISTEN: String(port) } });
    const { url } = await presign(id, port);
    const socket = new WebSocket(`${url.replace("http", "ws")}/chat`);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", reject);
    });
    const answer = new Promise((resolve) => socket.addEventListener("message", ({ data }) => resolve(data)));
    socket.send("hello");
    expect(await answer).toBe("hello");
    const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
    await platform.demand("DELETE", `/env-instance/${id}`);
    await closed;
  });

  it("never reaches a port of another process, whatever the config lists", async () => {
    const { id } = await platform.create(ref);
    for (const url of [platform.controlUrl, platform.dataUrl]) {
      const answer = await fetch((await presign(id, portOf(url))).url);
      expect([answer.status, await answer.json()]).toMatchObject([502, { errorInfo: { code: "sandbox.port_closed" } }]);
    }
    const other = await platform.create(ref);
    await callTool(urlOf(platform, other.id), "listen", { port });
    const { url } = await presign(id, port);
    expect((await fetch(url)).status).toBe(502);
    expect((await fetch((await presign(other.id, port)).url)).status).toBe(200);
    await platform.demand("DELETE", `/env-instance/${other.id}`);
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(502));
  });

  it("is valid for five minutes by default, and for at most a day", async () => {
    const { id } = await platform.create(ref);
    for (const [given, minutes] of [
      [undefined, 5],
      [null, 5],
      [0.5, 0.5],
      [60, 60],
      [1e9, 24 * 60],
    ]) {
      const before = Date.now();
      const { expires_at: at } = await presign(id, port, { expiration_time_in_minutes: given });
      const life = Date.parse(at) - before;
      expect(life).toBeGreaterThanOrEqual((minutes as number) * 60_000);
      expect(life).toBeLessThan((minutes as number) * 60_000 + 30_000);
    }
  });

  it("is refused with 400 for an invalid port or duration, before the instance is looked up", async () => {
    for (const body of [
      {},
      { port: 0 },
      { port: 65_536 },
      { port: 80.5 },
      { port: "80" },
      { port, expiration_time_in_minutes: 0 },
      { port, expiration_time_in_minutes: -1 },
      { port, expiration_time_in_minutes: "5" },
    ]) {
      expect(await platform.ask("POST", "/env-instance/nobody/presign-url", body)).toMatchObject({
        status: 400,
        error: { code: "request.invalid" },
      });
    }
    expect(await platform.ask("POST", "/env-instance/nobody/presign-url", { port })).toMatchObject({ status: 404 });
  });

  it("is refused with 501 and the original's message for a port that the config does not list, and for shared processes", async () => {
    const { id } = await platform.create(ref);
    const unnamed = await freePort();
    expect(await platform.ask("POST", `/env-instance/${id}/presign-url`, { port: unnamed })).toMatchObject({
      status: 501,
      message: expect.stringMatching(/^not supported on this engine \(process\): presign URL; .*does not list port/),
    });
    const packed = await publish(platform, projects.probe, { isolation: "shared", deployConfig: { ports: [3000] } });
    const { id: packedId } = await platform.create(packed);
    expect(await platform.ask("POST", `/env-instance/${packedId}/presign-url`, { port: 3000 })).toMatchObject({
      status: 501,
      message: expect.stringMatching(/^not supported on this engine \(process\): presign URL; .*share a process/),
    });
  });

  it("is refused for an instance that has ended", async () => {
    const { id } = await platform.create(ref);
    await platform.demand("DELETE", `/env-instance/${id}`);
    expect(await platform.ask("POST", `/env-instance/${id}/presign-url`, { port })).toMatchObject({
      status: 410,
      error: { code: "instance.gone" },
    });
  });
});

describeNeeding("redis", "a presigned link of two servers on one Redis", () => {
  it.runIf(process.platform === "linux")(
    "is made by one, leads to its port by the other, and dies with the instance at both",
    async () => {
      using tree = temporaryTree();
      await using redis = await startRedis();
      const start = () => startServerProcess(tree.path, { flags: { store: redis.url, round: "100ms", poolMin: 0 } });
      const starting = [start(), start()];
      try {
        const [first, second] = (await Promise.all(starting.map(({ ready }) => ready))) as [ServerProcess, ServerProcess];
        const port = await freePort();
        const ref = await publish(first, projects.window, { ports: [port] });
        const { id } = await first.create(ref, { environment_variables: { LISTEN: String(port) } });
        const { url } = (await first.demand("POST", `/env-instance/${id}/presign-url`, { port })) as { url: string };
        const links = [url, url.replace(first.dataUrl, second.dataUrl)];
        for (const link of links) expect(await (await fetch(`${link}/here`)).json()).toMatchObject({ url: "/here" });
        await second.demand("DELETE", `/env-instance/${id}`);
        await vi.waitFor(async () => {
          for (const link of links) expect((await fetch(link)).status).toBe(404);
        }, 5_000);
      } finally {
        await Promise.all(starting.map(({ kill }) => kill()));
        await removeHome(tree.path);
      }
    },
    60_000,
  );
});

function portOf(url: string): number {
  return Number(new URL(url).port);
}
