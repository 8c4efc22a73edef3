import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { expired, markUsed, removeExpired } from "./stored-datasets.ts";

const limits = { maxAgeMs: 100, maxBytes: 10, keepMs: 5 };
const stored = (path: string, usedAt: number, bytes = 1) => ({ path, usedAt, bytes });

it("removes datasets that were not used for long", () => {
  expect(expired([stored("old", 0), stored("newer", 50)], 120, limits)).toEqual(["old"]);
});

it("removes the least recently used ones while all are too large, but none that may be in use", () => {
  const all = [stored("c", 90, 6), stored("a", 70, 6), stored("b", 80, 6), stored("now", 118, 20)];
  expect(expired(all, 120, limits)).toEqual(["a", "b", "c"]);
  expect(expired(all.slice(0, 3), 120, limits)).toEqual(["a", "b"]);
  expect(expired(all.slice(0, 1), 120, limits)).toEqual([]);
});

it("finds them by the times of their folders", () => {
  using tree = temporaryTree({ "old/file": "12345", "new/file": "12345", ".part-x/file": "1" });
  for (const name of ["old", ".part-x"]) markUsed(join(tree.path, name), new Date(0));
  removeExpired(tree.path, Date.now(), { ...limits, keepMs: 60_000 });
  expect(readdirSync(tree.path)).toEqual(["new"]);
  removeExpired(join(tree.path, "nothing"), 0);
  expect(existsSync(join(tree.path, "new/file"))).toBe(true);
});
