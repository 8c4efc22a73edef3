import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { driftOf } from "./drift.ts";

const { provenance } = newTrajectory();

describe("the drift of a provenance", () => {
  it("is nothing for the same provenance, and for what was not recorded", () => {
    expect(driftOf(provenance, provenance)).toEqual([]);
    expect(driftOf(provenance, { ...provenance, environment_digest: "sha256:1", engine: "process", model: "m" })).toEqual([]);
  });

  it("names every field that differs, with both values, what decides the episodes first", () => {
    const recorded = { ...provenance, reward_digest: "sha256:1", server_version: "1.0.0" };
    expect(driftOf(recorded, { ...recorded, reward_digest: "sha256:2", server_version: "1.1.0", agent: "noop" })).toEqual([
      { field: "reward code", recorded: "sha256:1", now: "sha256:2", isEssential: true },
      { field: "agent", recorded: "scripted", now: "noop", isEssential: true },
      { field: "server version", recorded: "1.0.0", now: "1.1.0", isEssential: false },
    ]);
    expect(driftOf(recorded, { ...recorded, reward_digest: null })).toMatchObject([{ field: "reward code", now: null }]);
  });

  it("has one entry for each changed field", () => {
    const fields = [
      "environment",
      "environment_digest",
      "tools_digest",
      "agent",
      "model",
      "engine",
      "isolation",
      "client_version",
    ] as const;
    fc.assert(
      fc.property(fc.subarray([...fields]), (changed) => {
        const recorded = { ...provenance, ...Object.fromEntries(fields.map((field) => [field, "old"])) };
        const now = { ...recorded, ...Object.fromEntries(changed.map((field) => [field, "new"])) };
        expect(driftOf(recorded, now)).toHaveLength(changed.length);
      }),
    );
  });
});
