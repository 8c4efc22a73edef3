import { homedir } from "node:os";
import { expect, it } from "vitest";
import { readServerConfig } from "./config.ts";

const dataDir = (flags: Record<string, string>, variables: Record<string, string> = {}) => readServerConfig({ flags, variables }).dataDir;

it("keeps the data of benchmarks below the home, or where it is told", () => {
  expect(dataDir({})).toBe(`${homedir()}/.aenv/data`);
  expect(dataDir({ home: "/srv/aenv" })).toBe("/srv/aenv/data");
  expect(dataDir({ home: "/srv/aenv" }, { AENV_DATA_DIR: "~/data" })).toBe(`${homedir()}/data`);
  expect(dataDir({ dataDir: "/mnt/data" }, { AENV_DATA_DIR: "/srv/data" })).toBe("/mnt/data");
});

it("takes no file for the folder of the data", () => {
  expect(() => dataDir({ dataDir: import.meta.filename })).toThrow(/dataDir is .*config\.test\.ts; that is not a folder/);
});
