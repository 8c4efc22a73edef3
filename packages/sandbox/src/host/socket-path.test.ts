import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { socketFor } from "./socket-path.ts";

it("puts the socket into the folder of the sandbox, or where its path fits", () => {
  using tree = temporaryTree();
  expect(socketFor("/home/ada/sandboxes/a", tree.path)).toBe("/home/ada/sandboxes/a/s");
  const short = socketFor(`/${"x".repeat(120)}`, tree.path);
  expect(short).toMatch(new RegExp(`^${tree.path}/aenv-[0-9a-f]{18}/s$`));
  mkdirSync(join(short, ".."));
  expect(() => socketFor(`/${"x".repeat(120)}`, `/${"y".repeat(120)}`)).toThrow(/neither/);
});
