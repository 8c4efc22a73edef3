import { existsSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { RunFolder } from "./folder.ts";

it("a run keeps the files of the last attempt of each episode", async () => {
  using tree = temporaryTree();
  const { artifacts } = new RunFolder(tree.path, "run");
  expect([artifacts.count(), artifacts.read("run/0-0").size]).toEqual([0, 0]);
  await artifacts.keep("run/0-0", new Map([["old.txt", Buffer.from("old")]]));
  await artifacts.keep("run/0-0", new Map([["logs/new.txt", Buffer.from("new")]]));
  await artifacts.keep("run/0-1", new Map([["a", Buffer.from("a")]]));
  expect([...artifacts.read("run/0-0")].map(([path, bytes]) => [path, String(bytes)])).toEqual([["logs/new.txt", "new"]]);
  expect(artifacts.count()).toBe(2);
  await artifacts.keep("run/0-1", new Map());
  expect([artifacts.count(), existsSync(join(tree.path, "run/artifacts/0-1"))]).toEqual([1, false]);
});
