import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hashFiles, sha256 } from "./files.ts";
import { gitignore } from "./gitignore.ts";
import { packageContent } from "./package-hash.ts";
import { taskChecksum, treeHash } from "./tree-hash.ts";

describe("the checksum of a tree", () => {
  it("counts every file, follows links and leaves out empty folders", async () => {
    using tree = temporaryTree({ "task/a.txt": "1", "task/b/.hidden": "2", "other/c": "3" });
    const before = await taskChecksum(join(tree.path, "task"));
    symlinkSync(join(tree.path, "other"), join(tree.path, "task/link"));
    expect(await taskChecksum(join(tree.path, "task"))).not.toBe(before);
    expect((await hashFiles(join(tree.path, "task"))).map(({ path }) => path).sort()).toEqual(["a.txt", "b/.hidden", "link/c"]);
    symlinkSync(join(tree.path, "task"), join(tree.path, "task/loop"));
    await expect(taskChecksum(join(tree.path, "task"))).rejects.toThrow("a symbolic link to a folder that contains it");
  });

  it("does not depend on the order of files", () => {
    const file = fc.record({ path: fc.stringMatching(/^[a-c]{1,2}\/[d-f]{1,2}$/), sha256: fc.constantFrom("1", "2").map(sha256) });
    const files = fc.uniqueArray(file, { selector: ({ path }) => path, minLength: 1 });
    fc.assert(fc.property(files, (all) => treeHash(all) === treeHash([...all].reverse())));
  });

  it("of nothing does not exist", () => {
    expect(() => treeHash([])).toThrow("without files");
  });
});

describe("the content of a package", () => {
  it("has no caches, or what the task's own .gitignore says", async () => {
    const files = { "task.toml": "", "tests/a.pyc": "", "tests/b.log": "", "notes.txt": "", "environment/x": "" };
    using plain = temporaryTree(files);
    expect((await packageContent(plain.path)).files).toEqual(["environment/x", "task.toml", "tests/b.log"]);
    using own = temporaryTree({ ...files, ".gitignore": "*.log\n" });
    expect((await packageContent(own.path)).files).toEqual(["environment/x", "task.toml", "tests/a.pyc"]);
  });
});

describe("a .harborignore", () => {
  it("leaves out files of tests and solutions, and itself", async () => {
    const files = { "task.toml": "", "tests/test.sh": "", "tests/.harborignore": "*.log\n!keep.log\n/only\n" };
    const ignored = { "tests/a.log": "", "tests/in/b.log": "", "tests/only/x": "", "environment/.harborignore": "*" };
    const kept = { "tests/keep.log": "", "tests/in/only/x": "", "environment/a.log": "", "solution/a.log": "" };
    using ignoring = temporaryTree({ ...files, ...ignored, ...kept });
    expect((await packageContent(ignoring.path)).files).toEqual([...Object.keys(kept), "task.toml", "tests/test.sh"].sort());
    using without = temporaryTree({ "task.toml": "", "tests/test.sh": "", ...kept });
    expect(await taskChecksum(ignoring.path)).toBe(await taskChecksum(without.path));
  });

  it("of an inner folder comes after those above it", async () => {
    using tree = temporaryTree({
      "steps/a/tests/.harborignore": "*.txt",
      "steps/a/tests/b/.harborignore": "!x.txt",
      "steps/a/tests/b/x.txt": "",
    });
    expect((await packageContent(tree.path)).files).toEqual(["steps/a/tests/b/x.txt"]);
  });
});

describe("patterns of a .gitignore", () => {
  const ignored = (source: string, ...paths: string[]) => paths.filter(gitignore(source));

  it("without a slash match at every level, others from the root", () => {
    expect(ignored("*.log", "a.log", "x/b.log", "x/log")).toEqual(["a.log", "x/b.log"]);
    expect(ignored("/a\nx/y", "a", "b/a", "x/y/z", "c/x/y")).toEqual(["a", "x/y/z"]);
  });

  it("with a slash at the end match folders only", () => {
    expect(ignored("build/", "build", "build/x", "a/build/y")).toEqual(["build/x", "a/build/y"]);
  });

  it("can be undone by a later one", () => {
    expect(ignored("*.txt\n!keep.txt", "a.txt", "keep.txt", "b/keep.txt")).toEqual(["a.txt"]);
  });

  it("have stars over folders, classes and escapes", () => {
    expect(ignored("a/**/z\n[!b]1\n\\#x", "a/z", "a/b/c/z", "a1", "b1", "#x")).toEqual(["a/z", "a/b/c/z", "a1", "#x"]);
  });
});
