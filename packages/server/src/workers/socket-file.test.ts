import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { openSocketFile } from "./socket-file.ts";

it("files of killed servers are removed, and those of others that share the home are kept", async () => {
  // Pids end at 4 million.
  const others = [`${process.ppid}-00.sock`, `${process.pid}-00.sock`];
  const files = ["999999999-00.sock", "no-pid", ...others].map((name) => [`workers/${name}`, ""]);
  using tree = temporaryTree(Object.fromEntries(files));
  const file = await openSocketFile(tree.path);
  expect(dirname(file)).toBe(join(tree.path, "workers"));
  expect(await openSocketFile(tree.path)).not.toBe(file);
  expect(readdirSync(dirname(file)).sort()).toEqual(others.sort());
});

it("only the user of the server can open the folder", async () => {
  using tree = temporaryTree();
  await openSocketFile(tree.path);
  expect(statSync(join(tree.path, "workers")).mode & 0o077).toBe(0);
});
