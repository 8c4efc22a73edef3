import { noAbilities } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { RuntimePolicy } from "../slots/runtimes.ts";
import { newInstanceRow } from "./new-row.ts";

function ttlOf(request: { ttl?: string; ttlIsFallback?: boolean }, configTtl?: string): string {
  const config = { name: "shop", version: "1.0.0", ...(configTtl !== undefined && { deployConfig: { ttl: configTtl } }) };
  const environment = {
    name: "shop",
    version: "1.0.0",
    config,
    bundleDigest: null,
    children: [] as EnvironmentVersion["children"],
  } as EnvironmentVersion;
  const options = {
    serverId: "r",
    taskLimits: { perInstance: 1, perOwner: 1, totalMemoryMb: null, memoryMb: 1, defaultMemoryMb: 1 },
    runtimes: new RuntimePolicy({ engine: { name: "process", can: noAbilities }, runtime: "runc", runcOwners: [] }),
    defaultTtl: "30m",
    defaultIdleSeconds: null,
    engine: { name: "process", can: noAbilities },
    egressLimit: "open",
  } as const;
  return newInstanceRow(environment, { envName: "shop", ...request }, "ada", new Date(0), options).ttl;
}

describe("a new instance's time to live", () => {
  it("is that of the request, else of the environment, else the default", () => {
    expect(ttlOf({ ttl: "5m" }, "2h")).toBe("5m");
    expect(ttlOf({}, "2h")).toBe("2h");
    expect(ttlOf({ ttl: "" })).toBe("30m");
  });

  it("is the environment's if the request marks its own as a fallback", () => {
    expect(ttlOf({ ttl: "30m", ttlIsFallback: true }, "2h")).toBe("2h");
    expect(ttlOf({ ttl: "10m", ttlIsFallback: true })).toBe("10m");
  });

  it("is refused if it is not positive", () => {
    expect(() => ttlOf({ ttl: "soon" })).toThrow(/invalid duration 'soon'/);
  });
});
