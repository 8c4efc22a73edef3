import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkRoot, readDestination } from "./destination.ts";

const byHeaders = (id?: string, url?: string) => ({
  ...(id !== undefined && { "aenvcore-envinstance-id": id }),
  ...(url !== undefined && { "aenvcore-mcpproxy-url": url }),
});

describe("the destination of a call", () => {
  it("is in the path, for any MCP client", () => {
    expect(readDestination("/env-instance/shop-abc/mcp", {})).toEqual({ api: "trainer", instanceId: "shop-abc", path: "/mcp" });
    expect(readDestination("/env-instance/shop-abc/functions/peek", {})).toMatchObject({ path: "/functions/peek" });
  });

  it("may be a service, whose replica the gateway chooses, regardless of the headers", () => {
    const headers = byHeaders("shop-abc", "http://shop-abc:8081");
    expect(readDestination("/env-service/tools/mcp", headers)).toEqual({ api: "service", serviceId: "tools", path: "/mcp" });
    expect(readDestination("/env-service/tools/task/reward", {})).toMatchObject({ serviceId: "tools", path: "/task/reward" });
    for (const path of ["/fork", "/%66ork", "/fork-spec", "/list/"]) {
      expect(() => readDestination(`/env-service/tools${path}`, {})).toThrow(/is not a route of an instance/);
    }
    for (const path of ["/../b/mcp", "/%2e%2e/b/mcp"])
      expect(() => readDestination(`/env-service/tools${path}`, {})).toThrow(/is not a route of an instance/);
  });

  it("is in the original's headers, whose URL is compared and never used as an address", () => {
    expect(readDestination("/mcp", byHeaders("shop-abc", "http://shop-abc:8081"))).toEqual({
      api: "trainer",
      instanceId: "shop-abc",
      path: "/mcp",
    });
    expect(readDestination("/mcp", byHeaders(undefined, "http://shop-abc:8081"))).toMatchObject({ instanceId: "shop-abc" });
    expect(readDestination("/mcp", byHeaders("shop-abc"))).toMatchObject({ instanceId: "shop-abc" });
    expect(() => readDestination("/mcp", byHeaders("shop-abc", "http://169.254.169.254/"))).toThrow(/does not name the instance/);
    expect(() => readDestination("/mcp", byHeaders("shop-abc", "10.0.0.5:8081"))).toThrow("Invalid MCP server URL format");
    expect(() => readDestination("/mcp", {})).toThrow("AEnvCore-MCPProxy-URL header is required");
  });

  it("of an agent link is MCP or A2A only", () => {
    expect(readDestination("/agent/key/mcp", {})).toEqual({ api: "agent", agentKey: "key", role: null, path: "/mcp" });
    expect(readDestination("/agent/key.white.abc/mcp", {})).toEqual({
      api: "agent",
      agentKey: "key",
      role: { role: "white", mac: "abc" },
      path: "/role/white/mcp",
    });
    for (const path of ["/a2a", "/a2a/tasks/task-1:cancel", "/.well-known/agent-card.json", "/a2a/v1/message:send"])
      for (const end of ["", "/"])
        expect(readDestination(`/agent/key${path}${end}`, {})).toEqual({ api: "agent", agentKey: "key", role: null, path });
    for (const path of [
      "/agent/key/task/reward",
      "/agent/key/functions/list",
      "/agent/key/health",
      "/agent/key",
      "/agent/key/mcp/../task/reward",
      "/agent/key/%6dcp",
      "/agent/key/a2a/../task/reward",
      "/agent/key/a2a/..%2ftask/reward",
      "/agent/key/a2a/%2e%2e/task/reward",
      "/agent/key/a2a/./tasks",
      "/agent/key/a2a//tasks",
      "/agent/key/%612a/tasks",
      "/agent/key/.well-known/other",
      "/agent/key/.well-known/agent-card.json/x",
    ]) {
      expect(() => readDestination(path, {})).toThrow(/opens the tools at \/mcp and A2A at \/a2a, and nothing else/);
    }
  });

  it("of a service may name a replica for A2A, and for nothing else", () => {
    const tag = "0123456789abcdef";
    expect(readDestination(`/env-service/shop/replica/${tag}/a2a/tasks`, {})).toEqual({
      api: "service",
      serviceId: "shop",
      replica: tag,
      path: "/a2a/tasks",
    });
    for (const path of ["/mcp/", "/task/reward", "/a2a/../task/reward", "/fork"])
      expect(readable(`/env-service/shop/replica/${tag}${path}`)).not.toMatchObject({ replica: tag });
  });

  it("is never a route of the platform, however it is written", () => {
    for (const verb of ["/fork", "/fork-spec", "/list", "/fork/", "/%66ork", "/fork-spe%63/"]) {
      expect(() => readDestination(`/env-instance/a${verb}`, {})).toThrow(/is not a route of an instance/);
      expect(() => readDestination(verb, byHeaders("shop-abc"))).toThrow(/is not a route of an instance/);
    }
    for (const path of ["/env-instance", "/env-instance/"])
      expect(() => readDestination(path, byHeaders("a"))).toThrow(/is not a route of an instance/);
    expect(readDestination("/env-instance/a/functions/fork", {})).toMatchObject({ path: "/functions/fork" });
  });

  it("is the root of an instance only if that is a program", () => {
    const paths = ["/env-instance/a", "/env-instance/a/", "/env-service/a", "/env-service/a/"].map(
      (path) => readDestination(path, {}).path,
    );
    expect([...paths, readDestination("/", byHeaders("a")).path]).toEqual(["/", "/", "/", "/", "/"]);
    expect(() => checkRoot("/", false)).toThrow(/is not a route of an instance/);
    expect(() => checkRoot("/", true)).not.toThrow();
    expect(() => checkRoot("/mcp", false)).not.toThrow();
  });

  it("never leaves the instance's prefix through dot segments", () => {
    for (const path of ["/../b/mcp", "/./fork", "/x/../../b", "/%2e%2e/b/mcp", "/mcp/.."]) {
      expect(() => readDestination(`/env-instance/a${path}`, {})).toThrow(/is not a route of an instance/);
      expect(() => readDestination(path, byHeaders("shop-abc"))).toThrow(/is not a route of an instance/);
    }
  });

  it("is read from every path, or refused with an error code", () => {
    fc.assert(
      fc.property(fc.string(), fc.option(fc.string(), { nil: undefined }), fc.option(fc.webUrl(), { nil: undefined }), (path, id, url) => {
        try {
          const destination = readDestination(`/${path}`, byHeaders(id, url));
          if (destination.api === "agent") expect(destination.path).toBe("/mcp");
        } catch (error) {
          expect(error).toHaveProperty("code");
        }
      }),
    );
  });
});

function readable(path: string): object {
  try {
    return readDestination(path, {});
  } catch {
    return {};
  }
}
