import { expect, it } from "vitest";
import { compareTrees } from "./compare.ts";

const entry = (path: string, more: object = {}) => ({
  path,
  type: "file" as const,
  size: 1,
  mode: 0o644,
  uid: 0,
  gid: 0,
  modifiedAt: "2024-01-01T00:00:00.000Z",
  ...more,
});

it("files differ by size, time, kind, right to execute and target; not by owner", () => {
  const before = [
    entry("same"),
    entry("owner"),
    entry("size"),
    entry("time"),
    entry("mode"),
    entry("gone"),
    entry("link", { type: "link", target: "a" }),
    entry("folder"),
    entry(".git/HEAD"),
  ];
  const after = [
    entry("same"),
    entry("owner", { uid: 5, mode: 0o600 }),
    entry("size", { size: 2 }),
    entry("time", { modifiedAt: "2024-01-02T00:00:00.000Z" }),
    entry("mode", { mode: 0o755 }),
    entry("link", { type: "link", target: "b", modifiedAt: "2024-01-02T00:00:00.000Z" }),
    entry("folder", { type: "directory" }),
    entry("folder/new"),
    entry("socket", { type: "other" }),
    entry(".git/HEAD", { size: 9 }),
  ];
  const changes = compareTrees(before, after).map(({ path, before, after }) => [path, before?.mode ?? null, after?.mode ?? null]);
  expect(changes).toEqual([
    ["folder", "100644", null],
    ["folder/new", null, "100644"],
    ["gone", "100644", null],
    ["link", "120000", "120000"],
    ["mode", "100644", "100755"],
    ["size", "100644", "100644"],
    ["time", "100644", "100644"],
  ]);
  expect(compareTrees(before, before)).toEqual([]);
});
