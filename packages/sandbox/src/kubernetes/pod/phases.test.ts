import { expect, it } from "vitest";
import { countPhases } from "./phases.ts";
import type { Pod } from "./types.ts";

function pod(phase?: NonNullable<Pod["status"]>["phase"], deletionTimestamp?: string): Pod {
  return {
    metadata: { name: "one", ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
    spec: { containers: [] },
    ...(phase !== undefined && { status: { phase } }),
  };
}

it("counts pods by phase, new ones as Pending and deleted ones as Terminating", () => {
  const pods = [pod(), pod("Pending"), pod("Running"), pod("Running", "2026-01-01T00:00:00Z"), pod("Failed")];
  expect(countPhases(pods)).toEqual({ Pending: 2, Running: 1, Succeeded: 0, Failed: 1, Unknown: 0, Terminating: 1 });
});
