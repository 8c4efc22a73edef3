import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { isSandboxId, socketFor } from "./sandbox-folder.ts";

const NOBODY = 65_534;

it("removes folders in which the owner lacks write permission", () => {
  using tree = temporaryTree({ "sandbox/cache/package/file": "read-only" });
  for (const path of ["sandbox/cache/package/file", "sandbox/cache/package", "sandbox/cache", "sandbox", "."]) {
    // Root ignores permissions, so another user runs it.
    if (process.getuid?.() === 0) chownSync(join(tree.path, path), NOBODY, NOBODY);
  }
  chmodSync(join(tree.path, "sandbox/cache/package"), 0o500);
  const module = JSON.stringify(new URL("./sandbox-folder.ts", import.meta.url).href);
  const script = `const { removeFolder } = await import(${module}); await removeFolder(process.argv[1]);`;
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  execFileSync(process.execPath, ["--input-type=module", "--eval", script, join(tree.path, "sandbox")], { ...user, stdio: "pipe" });
  expect(existsSync(join(tree.path, "sandbox"))).toBe(false);
});

it("puts the socket into the folder of the sandbox, or where its path fits", () => {
  using tree = temporaryTree();
  expect(socketFor("/home/ada/sandboxes/a", tree.path)).toBe("/home/ada/sandboxes/a/s");
  const short = socketFor(`/${"x".repeat(120)}`, tree.path);
  expect(short).toMatch(new RegExp(`^${tree.path}/aenv-[0-9a-f]{18}/s$`));
  mkdirSync(join(short, ".."));
  expect(() => socketFor(`/${"x".repeat(120)}`, `/${"y".repeat(120)}`)).toThrow(/neither/);
});

it("accepts only ids that stay in their folder", () => {
  expect(["a", "shop-2k7", "A.b_c"].every(isSandboxId)).toBe(true);
  expect(["", ".", "..", ".part-1", "a/b", "a b", "-a"].some(isSandboxId)).toBe(false);
});
