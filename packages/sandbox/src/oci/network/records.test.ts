import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { Records } from "./records.ts";

it("records are added once, replaced, found and removed, and nothing of them is left", async () => {
  using tree = temporaryTree();
  const records = new Records<{ value: number }>(tree.path);
  expect([await records.add("a1", { value: 1 }), await records.add("a1", { value: 2 })]).toEqual([true, false]);
  for (const value of [3, 4]) records.replace("a1", { value });
  await records.add("b1", { value: 5 });
  expect([await records.find("a1"), await records.find("none"), await records.names("a")]).toEqual([{ value: 4 }, null, ["a1"]]);
  for (const name of ["a1", "b1", "none"]) await records.remove(name);
  expect(readdirSync(tree.path)).toEqual([]);
});

it("a record that is not complete is none", async () => {
  using tree = temporaryTree();
  writeFileSync(join(tree.path, "a1.json"), "");
  expect(await new Records(tree.path).find("a1")).toBeNull();
});
