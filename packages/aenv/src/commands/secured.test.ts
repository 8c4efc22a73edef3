import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../platform-tests/platform.ts";
import { aenv } from "../testing/cli.ts";

// Tokens are needed on both ports: an instance's id is not enough.
describe("call on a server that needs tokens on both ports", { timeout: 60_000 }, () => {
  let platform: Platform;
  let token: string;
  let foreign: string;
  let url: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { access: "on", idsAreKeys: false, round: "50ms" } });
    const headers = await platform.token("ada", "publisher", "trainer");
    token = headers.authorization.replace("Bearer ", "");
    foreign = (await platform.token("bob", "trainer")).authorization.replace("Bearer ", "");
    await publish(platform, projects.probe, { headers });
    const { id } = await platform.create("probe@1.0.0", {}, headers);
    url = `${platform.dataUrl}/env-instance/${id}`;
    await platform.demand("POST", "/env-service", { envName: "probe@1.0.0", service_name: "tools", replicas: 1 }, headers);
    await vi.waitFor(
      async () => expect(await platform.demand("GET", "/env-service/tools", undefined, headers)).toMatchObject({ available_replicas: 1 }),
      { timeout: 40_000, interval: 50 },
    );
  });
  afterAll(() => platform?.close());

  const at = (env: Record<string, string> = {}) => ({ env: { HOME: "/nonexistent", AENV_SYSTEM_URL: platform.controlUrl, ...env } });

  it("sends the token of --api-key to the data port", async () => {
    const { code, stdout } = await aenv(["call", "--list", "--url", url, "--api-key", token]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/tool +│/)]);
  });

  it("sends the token of AENV_API_KEY, or the one that login stored", async () => {
    expect((await aenv(["call", "--list", "--url", url], at({ AENV_API_KEY: token }))).code).toBe(0);
    using home = temporaryTree();
    const env = { HOME: home.path };
    expect((await aenv(["login", platform.controlUrl, "--api-key", token], { env })).code).toBe(0);
    expect((await aenv(["call", "--list", "--url", url], { env })).code).toBe(0);
    expect((await aenv(["call", "--list", "--url", `${url}/mcp`], { env })).code).toBe(0);
  });

  it("calls a service by name or by address", async () => {
    const named = await aenv(["call", "--list", "--service", "tools"], at({ AENV_API_KEY: token }));
    expect([named.code, named.stdout]).toEqual([0, expect.stringMatching(/tool +│/)]);
    const reached = await aenv(["call", "--health", "--url", `${platform.dataUrl}/env-service/tools`], at({ AENV_API_KEY: token }));
    expect(reached.code).toBe(0);
  });

  it.each([["--list"], ["--reward"], ["--health"], ["echo"], ["--function", "print"], ["--tasks"], ["--reset"], ["--snapshot"]])(
    "ends with 77 and the next step without a token: %s %s",
    async (...argv) => {
      const { code, stderr } = await aenv(["call", ...argv.filter(Boolean), "--url", url]);
      expect(stderr).toContain("--api-key");
      expect(code).toBe(77);
    },
  );

  it("exits with 77 for a wrong token, and never prints it", async () => {
    const { code, stdout, stderr } = await aenv(["call", "--list", "--url", url, "--api-key", "aenv_wrong_secret"]);
    expect(code).toBe(77);
    expect(stdout + stderr).not.toContain("wrong_secret");
  });

  it("does not find instances of another owner", async () => {
    const { code } = await aenv(["call", "--list", "--url", url, "--api-key", foreign]);
    expect(code).toBe(1);
    expect((await aenv(["call", "--list", "--service", "tools"], at({ AENV_API_KEY: foreign }))).code).toBe(1);
  });

  it("does not send a token of the variables to a server that is not the platform's data port", async () => {
    const seen: IncomingHttpHeaders[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers);
      response.writeHead(401).end();
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    const id = url.split("/").at(-1);
    for (const path of ["", `/env-instance/${id}`, "/env-service/tools"])
      await aenv(["call", "--list", "--url", `http://127.0.0.1:${port}${path}`], at({ AENV_API_KEY: token }));
    other.close();
    other.closeAllConnections();
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
  });

  it("exits with 2 when both a service and an address are given", async () => {
    expect((await aenv(["call", "--list", "--service", "tools", "--url", url])).code).toBe(2);
  });
});
