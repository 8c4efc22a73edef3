import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

describe("links", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { publicUrl: "https://agents.example/" } });
  });
  afterAll(() => platform?.close());

  it("for agents use the public URL of the server", async () => {
    const { agent_url: link } = await platform.create(await publish(platform, projects.tally));
    expect(link).toMatch(/^https:\/\/agents\.example\/agent\/[a-z2-7]{20}\/mcp$/);
  });

  it("for files use the address that the caller used, and work once", async () => {
    const { port } = new URL(platform.controlUrl);
    const sign = async (query: string, headers = {}) => {
      const answer = await fetch(`http://localhost:${port}/env/files/1.0.0/sign${query}`, { method: "POST", headers });
      return ((await answer.json()) as { data: string }).data;
    };
    const link = await sign("");
    expect(link).toMatch(new RegExp(`^http://localhost:${port}/transfer/`));
    expect(await sign("", { "x-forwarded-proto": "https" })).toMatch(/^https:\/\/localhost/);
    const archive = gzipSync("files");
    for (const status of [200, 404]) expect((await fetch(link, { method: "PUT", body: archive })).status).toBe(status);
  });
});
