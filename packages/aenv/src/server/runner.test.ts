import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { runnerCode } from "./runner.ts";

it("the runner is one file of JavaScript, which needs no other file and contains no path of this machine", async () => {
  using tree = temporaryTree({ "package.json": { type: "module" } });
  const code = await runnerCode();
  expect(code).not.toContain(import.meta.dirname.slice(0, 10));
  expect(await runnerCode()).toBe(code);
  const file = join(tree.path, "runner.js");
  writeFileSync(file, code);
  const child = spawn(process.execPath, [file], { stdio: ["ignore", "ignore", "pipe"] });
  const [[text]] = await Promise.all([once(child.stderr, "data"), once(child, "exit")]);
  expect(String(text)).toContain("the runner needs a socket to listen on");
});
