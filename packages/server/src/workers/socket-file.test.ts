import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { openSocketFile } from "./socket-file.ts";

it("files of killed servers are removed, and those of others that share the home are kept", async () => {
  // Pids end at 4 million.
  using tree = temporaryTree({ "workers/999999999.sock": "", [`workers/${process.ppid}.sock`]: "", "workers/no-pid": "" });
  const file = await openSocketFile(tree.path);
  expect(file).toBe(join(tree.path, "workers", `${process.pid}.sock`));
  expect(readdirSync(join(tree.path, "workers"))).toEqual([`${process.ppid}.sock`]);
});

it("only the user of the server can open the folder", async () => {
  using tree = temporaryTree();
  await openSocketFile(tree.path);
  expect(statSync(join(tree.path, "workers")).mode & 0o077).toBe(0);
});
