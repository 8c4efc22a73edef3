import { describe, expect, it } from "vitest";
import { parseSnapshotRef, snapshotName } from "./snapshot.ts";

const ID = `snap-${"0a".repeat(12)}`;

describe("the field snapshot of a request", () => {
  it("names a stored snapshot by its name or id, and is a state otherwise", () => {
    expect(parseSnapshotRef("prepared")).toEqual({ name: "prepared" });
    expect(parseSnapshotRef(ID)).toEqual({ id: ID });
    expect(parseSnapshotRef({ name: "prepared" })).toEqual({ name: "prepared" });
    expect(parseSnapshotRef({ id: ID })).toEqual({ id: ID });
    for (const state of [{ environment: "e@1", format: "graph", data: "[]" }, { name: "a", id: ID }, { name: 1 }, {}, null, 7, [ID]])
      expect(parseSnapshotRef(state)).toBeNull();
  });
});

describe("the name of a snapshot", () => {
  it("is short, safe in a path, and never like an id", () => {
    for (const name of ["a", "after-setup", "v1.2_3", "A".repeat(63)]) expect(snapshotName.safeParse(name).success).toBe(true);
    for (const name of ["", ".", "-a", "a/b", "a b", "a".repeat(64), ID]) expect(snapshotName.safeParse(name).success).toBe(false);
  });
});
