import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readAddressee } from "./address.ts";

const byHeaders = (id?: string, url?: string) => ({
  ...(id !== undefined && { "aenvcore-envinstance-id": id }),
  ...(url !== undefined && { "aenvcore-mcpproxy-url": url }),
});

describe("the addressee of a call", () => {
  it("stands in the path, for any MCP client", () => {
    expect(readAddressee("/env-instance/shop-abc/mcp", {})).toEqual({ door: "trainer", instanceId: "shop-abc", path: "/mcp" });
    expect(readAddressee("/env-instance/shop-abc/functions/peek", {})).toMatchObject({ path: "/functions/peek" });
  });

  it("stands in the original's headers, whose URL is compared and never believed", () => {
    expect(readAddressee("/mcp", byHeaders("shop-abc", "http://shop-abc:8081"))).toEqual({
      door: "trainer",
      instanceId: "shop-abc",
      path: "/mcp",
    });
    expect(readAddressee("/mcp", byHeaders(undefined, "http://shop-abc:8081"))).toMatchObject({ instanceId: "shop-abc" });
    expect(readAddressee("/mcp", byHeaders("shop-abc"))).toMatchObject({ instanceId: "shop-abc" });
    expect(() => readAddressee("/mcp", byHeaders("shop-abc", "http://169.254.169.254/"))).toThrow(/does not name the instance/);
    expect(() => readAddressee("/mcp", byHeaders("shop-abc", "10.0.0.5:8081"))).toThrow("Invalid MCP server URL format");
    expect(() => readAddressee("/mcp", {})).toThrow("AEnvCore-MCPProxy-URL header is required");
  });

  it("of an agent link is its tools and nothing else", () => {
    expect(readAddressee("/agent/key/mcp", {})).toEqual({ door: "agent", agentKey: "key", path: "/mcp" });
    for (const path of [
      "/agent/key/task/reward",
      "/agent/key/functions/list",
      "/agent/key/health",
      "/agent/key",
      "/agent/key/mcp/../task/reward",
      "/agent/key/%6dcp",
    ]) {
      expect(() => readAddressee(path, {})).toThrow(/opens the tools at \/mcp and nothing else/);
    }
  });

  it("is never one of the control port's", () => {
    for (const path of ["/env-instance/a", "/env-instance/a/fork", "/env-instance/a/opening", "/env-instance", "/env-instance/a/list"]) {
      expect(() => readAddressee(path, {})).toThrow(/belongs to the control port/);
    }
  });

  it("is read from every path without breaking", () => {
    fc.assert(
      fc.property(fc.string(), fc.option(fc.string(), { nil: undefined }), fc.option(fc.webUrl(), { nil: undefined }), (path, id, url) => {
        try {
          const addressee = readAddressee(`/${path}`, byHeaders(id, url));
          if (addressee.door === "agent") expect(addressee.path).toBe("/mcp");
        } catch (error) {
          expect(error).toHaveProperty("code");
        }
      }),
    );
  });
});
