import { chmodSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { readProject } from "../project/project.ts";
import { openArchive } from "./archive.ts";
import { bundleProject } from "./bundle.ts";

const loading = { timeoutMs: 1_000, onOutput: () => undefined };
const config = { name: "any", version: "1.0.0", runtime: { command: ["./serve", "{port}"] } };

it("a project whose environment is a command is bundled as it is, without what belongs to one machine", async () => {
  using tree = temporaryTree({
    "config.json": config,
    serve: "#!/bin/sh\n",
    "lib/a.py": "a",
    "lib/__pycache__/a.pyc": "",
    ".venv/bin/python": "",
    ".git/HEAD": "",
    ".env": "SECRET=1",
    "node_modules/x/index.js": "",
    "dist/any-1.0.0-0123456789ab.tar.gz": "",
    "runs/any-oracle/run.json": "{}",
    "runs/any-oracle/summary.json": "{}",
  });
  chmodSync(join(tree.path, "serve"), 0o755);
  symlinkSync("lib/a.py", join(tree.path, "link.py"));
  symlinkSync("/etc/hostname", join(tree.path, "outside"));
  const { bytes, manifest, leftOut } = await bundleProject(readProject(tree.path, "/"), loading);
  const { entries } = await openArchive(bytes);
  expect(entries.map(({ path, isExecutable = false }) => [path, isExecutable])).toEqual([
    ["config.json", false],
    ["lib/a.py", false],
    ["link.py", false],
    ["manifest.json", false],
    ["serve", true],
  ]);
  expect(leftOut).toEqual([
    ".env",
    ".git",
    ".venv",
    "dist/any-1.0.0-0123456789ab.tar.gz",
    "lib/__pycache__",
    "node_modules",
    "outside",
    "runs",
  ]);
  expect(manifest.main).toBeUndefined();
});

it("a file that the bundle needs for itself is refused", async () => {
  using tree = temporaryTree({ "config.json": config, "manifest.json": "{}" });
  await expect(bundleProject(readProject(tree.path, "/"), loading)).rejects.toThrow("the project has a file manifest.json");
});
