import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { requireInspector, startInspector } from "./inspector.ts";

const PACKAGE = "node_modules/@modelcontextprotocol/inspector";

function installed(version: string) {
  const tree = temporaryTree({
    [`${PACKAGE}/package.json`]: { name: "@modelcontextprotocol/inspector", version },
    [`${PACKAGE}/cli.js`]: "console.log(process.env.CLIENT_PORT, ...process.argv.slice(2));",
    "node_modules/.bin/x": "",
    "project/src/x": "",
  });
  symlinkSync(`../@modelcontextprotocol/inspector/cli.js`, join(tree.path, "node_modules/.bin/mcp-inspector"));
  onTestFinished(() => tree[Symbol.dispose]());
  return tree;
}

function firstLine(command: string): Promise<string> {
  return new Promise((resolve) => startInspector(command, "http://127.0.0.1:1/mcp", 7_000, resolve));
}

describe("the Inspector", () => {
  it("is found in a folder above the project, or on the PATH", () => {
    const tree = installed("2.0.0");
    const command = join(tree.path, "node_modules/.bin/mcp-inspector");
    expect(requireInspector(join(tree.path, "project"), "")).toBe(command);
    expect(requireInspector("/nowhere", `/usr/none:${join(tree.path, "node_modules/.bin")}`)).toBe(command);
    expect(() => requireInspector("/nowhere", "")).toThrow("not installed");
  });

  it("gets the environment's address as an option if its version supports that", async () => {
    const modern = installed("2.1.0");
    expect(await firstLine(requireInspector(modern.path, ""))).toBe("7000 --web --transport http --server-url http://127.0.0.1:1/mcp");
    const old = installed("0.15.0");
    expect(await firstLine(requireInspector(old.path, ""))).toBe("7000");
  });
});
