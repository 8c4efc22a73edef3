import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unpackInto } from "./unpack-into.ts";

let tree: Tree;
let folder: string;
beforeEach(() => {
  tree = temporaryTree({ "outside/kept.txt": "kept" });
  folder = join(tree.path, "folder");
  mkdirSync(folder);
});
afterEach(() => tree[Symbol.dispose]());

const entry = (path: string) => ({ path, bytes: Buffer.from(`new ${path}`) });

describe("unpackInto", () => {
  it("overwrites files of the same name and leaves all others unchanged", () => {
    writeFileSync(join(folder, "a"), "old");
    writeFileSync(join(folder, "b"), "mine");
    unpackInto(folder, [entry("a"), entry("deep/er/c")]);
    expect(readFileSync(join(folder, "a"), "utf8")).toBe("new a");
    expect(readFileSync(join(folder, "b"), "utf8")).toBe("mine");
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(["a", "b", "deep", "deep/er", "deep/er/c"]);
  });

  it("replaces a link, and does not write to its target", () => {
    symlinkSync(join(tree.path, "outside/kept.txt"), join(folder, "a"));
    unpackInto(folder, [entry("a")]);
    expect(readFileSync(join(tree.path, "outside/kept.txt"), "utf8")).toBe("kept");
    expect(readFileSync(join(folder, "a"), "utf8")).toBe("new a");
  });

  it.each(["../outside", "../nowhere"])("follows no link out of the folder, and then writes nothing: %s", (target) => {
    symlinkSync(target, join(folder, "data"));
    expect(() => unpackInto(folder, [entry("a"), entry("data/kept.txt")])).toThrow("is not a real folder");
    expect(readFileSync(join(tree.path, "outside/kept.txt"), "utf8")).toBe("kept");
    expect(readdirSync(folder)).toEqual(["data"]);
  });

  it("refuses to use a file as a folder", () => {
    writeFileSync(join(folder, "data"), "mine");
    expect(() => unpackInto(folder, [entry("data/x")])).toThrow("is not a real folder");
    expect(readFileSync(join(folder, "data"), "utf8")).toBe("mine");
  });
});
