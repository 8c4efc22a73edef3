import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readHashes, replaceDirectory } from "./directory.ts";

let tree: Tree;
let to: string;
beforeEach(() => {
  tree = temporaryTree({ "data/hashes.json": { "mock/db.json": "11" }, "data/mock/db.json": "old" });
  to = join(tree.path, "data");
});
afterEach(() => tree[Symbol.dispose]());

it("leaves a directory unchanged, and no temporary files, when writing fails half-way", () => {
  // The path of the first file is a folder of the second.
  const files = new Map([
    ["mock/db.json", "new"],
    ["mock/db.json/deeper", "impossible"],
  ]);
  expect(() => replaceDirectory(to, files, ["mock"])).toThrow(/EEXIST|ENOTDIR/);
  expect(readFileSync(join(to, "mock/db.json"), "utf8")).toBe("old");
  expect(readHashes(to)).toEqual({ "mock/db.json": "11" });
  expect(readdirSync(tree.path)).toEqual(["data"]);
});

it("creates no directory when the first write fails", () => {
  expect(() => replaceDirectory(join(tree.path, "data/mock/db.json/x"), new Map([["a", "b"]]), [])).toThrow(/EEXIST|ENOTDIR/);
  expect(readdirSync(tree.path, { recursive: true }).sort()).toEqual(["data", "data/hashes.json", "data/mock", "data/mock/db.json"]);
});
