import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { guessedType, manifestEntry, planArtifacts } from "./artifacts.ts";

describe("artifacts", () => {
  it("mirror their paths, after the directory that is always collected", () => {
    expect(planArtifacts(["/var/log/x"]).map(({ hostPath }) => hostPath)).toEqual(["logs/artifacts", "var/log/x"]);
    expect(planArtifacts(["/logs/artifacts/"]).map(({ source }) => source)).toEqual(["/logs/artifacts/"]);
  });

  it("do not overwrite each other: the first source keeps a place", () => {
    const planned = planArtifacts(["/a", { source: "/b", destination: "a/x", exclude: [], service: null }, "/a"]);
    expect(planned.map(({ source, isSkipped }) => [source, isSkipped])).toEqual([
      ["/logs/artifacts", false],
      ["/a", false],
      ["/b", true],
      ["/a", false],
    ]);
  });

  it("of other services come last", () => {
    const planned = planArtifacts([{ source: "/b", destination: null, exclude: [], service: "db" }, "/a"]);
    expect(planned.map(({ source }) => source)).toEqual(["/logs/artifacts", "/a", "/b"]);
  });

  it("never get a path outside of the trial's folder", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "/", ".", "..", "b/") }), (source) => {
        for (const { hostPath } of planArtifacts([`/${source}`])) expect(hostPath.split("/")).not.toContain("..");
      }),
    );
  });

  it("are listed with their status", () => {
    const [first] = planArtifacts([]);
    expect(first && manifestEntry(first, "directory", "empty")).toEqual({
      source: "/logs/artifacts",
      destination: "artifacts/logs/artifacts",
      type: "directory",
      status: "empty",
      service: null,
      exclude: [],
    });
    expect([guessedType("/a/b.txt"), guessedType("/a/b/")]).toEqual(["file", "directory"]);
  });
});
