import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  controlRoutes,
  fillPath,
  instancePrefix,
  instanceRoutes,
  isReservedEndpoint,
  matchesPath,
  pathsBelowInstance,
  sandboxRoutes,
} from "./routes.ts";

const routes = Object.values(sandboxRoutes);

describe("the route table", () => {
  it("opens MCP, A2A and nothing else to an agent", () => {
    const open = routes.filter((route) => route.api === "agent");
    expect(open.map((route) => route.path)).toEqual(["/mcp", "/mcp", "/mcp", "/.well-known/agent-card.json", "/a2a", "/a2a/*"]);
  });

  it("has no two routes of one method and path", () => {
    const keys = routes.map((route) => `${route.method} ${route.path}`);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("has the original's paths", () => {
    expect(routes.map((route) => `${route.method} ${route.path}`)).toEqual(
      expect.arrayContaining([
        "POST /mcp",
        "GET /health",
        "GET /functions/list",
        "POST /functions/:name",
        "POST /task/reward",
        "POST /env-instance",
        "GET /env-instance/:id",
        "DELETE /env-instance/:id",
      ]),
    );
  });
});

describe("the routes about an episode", () => {
  it("belong to the trainer API, and those that may change the state are not GET", () => {
    const { digest, prompt, reply, hear, status, stepReward, oracle } = instanceRoutes;
    for (const route of [digest, prompt, reply, hear, status, stepReward, oracle])
      expect([route.path, route.api]).toEqual([route.path, "trainer"]);
    expect([digest, prompt, status, oracle].map(({ method }) => method)).toEqual(["GET", "GET", "GET", "GET"]);
    expect([reply, hear, stepReward].map(({ method }) => method)).toEqual(["POST", "POST", "POST"]);
  });
});

describe("the routes of roles", () => {
  it("belong to the trainer API, so that no agent can choose its role", () => {
    const { roleMcp, roleMcpStream, roleMcpEnd, forfeit } = instanceRoutes;
    for (const route of [roleMcp, roleMcpStream, roleMcpEnd, forfeit]) expect([route.path, route.api]).toEqual([route.path, "trainer"]);
  });
});

describe("pathsBelowInstance", () => {
  it("lists the platform's routes below an instance, and none that is about all instances", () => {
    expect(pathsBelowInstance("platform")).toEqual(["/list", "", "/fork", "/fork-spec", "/rename"]);
    expect(pathsBelowInstance("agent")).toEqual(["/mcp", "/.well-known/agent-card.json", "/a2a", "/a2a/*"]);
  });
});

describe("matchesPath", () => {
  it("matches a name with exactly one segment and a star with any path", () => {
    expect(matchesPath("/functions/:name", ["functions", "peek"])).toBe(true);
    expect(matchesPath("/functions/:name", ["functions", ""])).toBe(false);
    expect(matchesPath("/functions/:name", ["functions", "peek", "more"])).toBe(false);
    expect(matchesPath("", [])).toBe(true);
    expect(matchesPath("/*", ["weather", "today"])).toBe(true);
    expect(matchesPath("/*", [])).toBe(false);
  });
});

describe("isReservedEndpoint", () => {
  it("reserves every fixed path of the table, and only the method where authors may add others", () => {
    for (const path of [
      "/mcp",
      "/mcp/x",
      "/env-instance",
      "/env-instance/x",
      "/state/x",
      "/state/digest",
      "/episode/prompt",
      "/episode/x",
      "/role/white/mcp",
      "/role/x",
      "/task/list",
      "/functions/list",
      "/fork",
      "/list",
      "/fork-spec",
    ]) {
      expect([path, isReservedEndpoint("PUT", path)]).toEqual([path, true]);
    }
    expect(isReservedEndpoint("GET", "/health")).toBe(true);
    expect(isReservedEndpoint("POST", "/health")).toBe(false);
    expect(isReservedEndpoint("GET", "/task/reward")).toBe(false);
    expect(isReservedEndpoint("PUT", "/weather")).toBe(false);
    expect(isReservedEndpoint("POST", "/functions/peek")).toBe(false);
  });
});

describe("fillPath", () => {
  it("puts a name in as one segment, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "grapheme" }), (name) => {
        const path = fillPath(instanceRoutes.callFunction, { name });
        expect(path.split("/").length).toBe(3);
        expect(decodeURIComponent(path.slice("/functions/".length))).toBe(name);
      }),
    );
  });

  it("leaves a path without names as it is", () => {
    expect(fillPath(instanceRoutes.health)).toBe("/health");
  });

  it("says which name is missing", () => {
    expect(() => fillPath(controlRoutes.getInstance)).toThrow("/env-instance/:id needs 'id'");
  });
});

describe("instancePrefix", () => {
  it("keeps an instance's routes below its id", () => {
    expect(instancePrefix("shop-1a2b3c")).toBe("/env-instance/shop-1a2b3c");
    expect(instancePrefix("../health?x")).toBe("/env-instance/..%2Fhealth%3Fx");
  });
});
