import { homedir } from "node:os";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { readServerConfig, shownConfig } from "./config.ts";

const dataDir = (flags: Record<string, string>, variables: Record<string, string> = {}) => readServerConfig({ flags, variables }).dataDir;

it("keeps the data of benchmarks below the home by default", () => {
  expect(dataDir({})).toBe(`${homedir()}/.aenv/data`);
  expect(dataDir({ home: "/srv/aenv" })).toBe("/srv/aenv/data");
  expect(dataDir({ home: "/srv/aenv" }, { AENV_DATA_DIR: "~/data" })).toBe(`${homedir()}/data`);
  expect(dataDir({ dataDir: "/mnt/data" }, { AENV_DATA_DIR: "/srv/data" })).toBe("/mnt/data");
});

it("reads a setting from the file that its _FILE variable names, without the line end; the plain variable takes precedence", () => {
  using tree = temporaryTree({ store: "redis://:pass word@redis.example:6379\n", hosts: "a.example,b.example" });
  const variables = { AENV_STORE_FILE: join(tree.path, "store"), AENV_ALLOWED_HOSTS_FILE: join(tree.path, "hosts") };
  const { store, allowedHosts } = readServerConfig({ flags: {}, variables });
  expect({ store, allowedHosts }).toEqual({ store: "redis://:pass word@redis.example:6379", allowedHosts: ["a.example", "b.example"] });
  expect(readServerConfig({ flags: {}, variables: { ...variables, AENV_STORE: "memory:" } }).store).toBe("memory:");
});

it("names the file of a setting that cannot be read", () => {
  const variables = { AENV_STORE_FILE: "/nowhere/store" };
  expect(() => readServerConfig({ flags: {}, variables })).toThrow("the file /nowhere/store of AENV_STORE_FILE cannot be read");
});

it("refuses a subnet for sandboxes that is none, or too large or too small for them", () => {
  const read = (sandboxSubnet: string) => readServerConfig({ flags: { sandboxSubnet }, variables: {} }).sandboxSubnet;
  expect(read("172.30.0.0/16")).toBe("172.30.0.0/16");
  for (const wrong of ["172.30.0.0", "172.30.0.0/30", "172.0.0.0/9", "fd00::/16", "here"])
    expect(() => read(wrong)).toThrow(`sandboxSubnet is "${wrong}"; must be an IPv4 network from /10 to /29`);
});

it("refuses a file as the data folder", () => {
  expect(() => dataDir({ dataDir: import.meta.filename })).toThrow(/dataDir is .*config\.test\.ts, which is not a folder/);
});

it("does not show the administrator's token", () => {
  const token = `aenv_0123456789ab_${"a".repeat(27)}`;
  const config = readServerConfig({ flags: {}, variables: { AENV_ADMIN_TOKEN: token } });
  expect(config.adminToken).toBe(token);
  expect(shownConfig(config).adminToken).toBe("***");
  expect(shownConfig(readServerConfig({ flags: {}, variables: {} })).adminToken).toBeNull();
});

it("takes a URL for links that has a star for the name of each link, and nothing after the host", () => {
  const read = (linkUrl: string) => readServerConfig({ flags: { linkUrl }, variables: {} }).linkUrl;
  for (const url of ["https://*.links.example", "http://*.localhost:8081/", "https://*.a.b:8443"]) expect(read(url)).toBe(url);
  for (const url of [
    "https://links.example",
    "*.links.example",
    "https://*.links.example/x",
    "https://a.*.example",
    "https://*",
    "https://*.a b",
  ])
    expect(() => read(url)).toThrow(/linkUrl is .*must be a URL such as https:\/\/\*\.links\.example/);
});
