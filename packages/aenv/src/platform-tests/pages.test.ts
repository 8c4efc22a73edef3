import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

describe("a page of another local port, at a server without tokens", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform?.close());
  const origin = "http://localhost:3000";

  it("cannot release a version", async () => {
    const [name, version] = (await publish(platform, projects.tally)).split("@");
    const release = (headers: Record<string, string>) =>
      fetch(`${platform.controlUrl}/env/${name}/${version}/release`, { method: "POST", headers }).then(({ status }) => status);
    expect(await release({ origin })).toBe(403);
    expect(await release({ origin: platform.controlUrl })).toBe(200);
  });

  it("cannot open the WebSocket of a terminal, or one of OpenEnv", async () => {
    const { id } = await platform.create(await publish(platform, projects.tally));
    const statusOf = async (url: string, from: string) => {
      const socket = new WebSocket(url, { origin: from });
      const [, response] = await Promise.race([
        once(socket, "unexpected-response"),
        once(socket, "open").then(() => [null, { statusCode: 101 }]),
      ]);
      socket.on("error", () => {}).terminate();
      return response.statusCode;
    };
    const terminal = `${platform.controlUrl.replace("http", "ws")}/env-instance/${id}/terminal`;
    expect(await statusOf(terminal, origin)).toBe(403);
    expect(await statusOf(terminal, platform.controlUrl)).not.toBe(403);
    const openenv = `${platform.dataUrl.replace("http", "ws")}/openenv/tally/ws`;
    expect(await statusOf(openenv, origin)).toBe(403);
  });
});
