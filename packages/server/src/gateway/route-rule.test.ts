import { instanceRoutes, sandboxRoutes } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { readDestination } from "./destination.ts";
import { routeRuleFor } from "./route-rule.ts";

const does = "something new";

describe("the route rule of the gateway", () => {
  it("follows the table: a new platform route is refused, a new trainer route is passed on, an unlisted path is refused", () => {
    const { callEndpoint: _, ...fixed } = instanceRoutes;
    const rule = routeRuleFor({
      ...fixed,
      dump: { method: "GET", path: "/env-instance/:id/dump", api: "platform", does },
      inspect: { method: "GET", path: "/inspect/:part", api: "trainer", does },
    });
    expect(readDestination("/env-instance/a/inspect/state", {}, rule)).toMatchObject({ path: "/inspect/state" });
    expect(() => readDestination("/env-instance/a/dump", {}, rule)).toThrow(/is not a route of an instance/);
    expect(() => readDestination("/env-instance/a/weather", {}, rule)).toThrow(/is not a route of an instance/);
  });

  it("refuses a platform route before it passes on an endpoint of the environment's author", () => {
    const rule = routeRuleFor({ ...sandboxRoutes, dump: { method: "GET", path: "/env-instance/:id/dump", api: "platform", does } });
    for (const path of ["/dump", "/dump/", "/d%75mp", "/./dump", "/x/../dump"]) expect(() => rule.check(path)).toThrow(/is not a route/);
    expect(() => rule.check("/weather/today")).not.toThrow();
    expect(() => rule.check("/dump/more")).not.toThrow();
  });

  it("refuses a path that does not begin with a slash", () => {
    for (const path of ["", "mcp", "x/mcp", "http://host/mcp", "*"]) expect(() => routeRuleFor().check(path)).toThrow(/is not a route/);
  });

  it.each([
    "//mcp",
    "/mcp//",
    "//",
    "/weather//today",
    "/%2f",
    "/%2Fmcp",
    "/weather%2ftoday",
    "/weather%5Ctoday",
    "/weather\\today",
    "/%2e/mcp",
    "/weather%2Ejson",
    "/%252f",
    "/%25252e%25252e/mcp",
  ])("refuses %s, which two readers may split differently", (path) => {
    expect(() => routeRuleFor().check(path)).toThrow(/is not a route/);
  });

  it("passes on escaped characters that divide nothing, dots within a segment, and one slash at the end", () => {
    for (const path of ["/weather.json", "/w%65ather", "/caf%C3%A9/today/", "/a%20b", "/100%25"])
      expect(() => routeRuleFor().check(path)).not.toThrow();
  });

  it("opens a new route of the agent API to agent links and agents' tokens", () => {
    const rule = routeRuleFor({ ...instanceRoutes, a2a: { method: "POST", path: "/a2a", api: "agent", does } });
    expect(readDestination("/agent/key/a2a", {}, rule)).toEqual({ api: "agent", agentKey: "key", role: null, path: "/a2a" });
    expect(rule.isAgentPath("/a2a")).toBe(true);
    expect(rule.isAgentPath("/health")).toBe(false);
  });
});
