import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describeNeeding, oldNode } from "@aenv/testing";
import { describe, expect, it } from "vitest";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const run = (node: string, ...args: string[]) => spawnSync(node, args, { encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });

describe("npm run quickstart", () => {
  it("creates an instance, uses all of it, releases it, plays a rollout, and prints the next steps", () => {
    const { status, stdout, stderr } = run(process.execPath, path("quickstart.ts"));
    expect(stderr).toBe("");
    expect(status).toBe(0);
    const lines = stdout.split("\n").map((line) => line.trim());
    expect(lines.filter((line) => line.startsWith("✓"))).toEqual([
      "✓ Served    environments/echo",
      expect.stringMatching(/^✓ Created {3}echo-[a-z2-7]{20}$/),
      "✓ Task      \"Echo the word 'hello'.\"",
      "✓ Tools     echo, remember",
      '✓ Called    echo({ text: "hello" }) -> hello',
      '✓ Called    transcript() -> {"echoes":["hello"],"notes":{}}',
      "✓ Reward    1 = 0.8 x said_it (1) + 0.2 x brief (1)",
      '✓ Health    {"status":"healthy","echoes":1}',
      expect.stringMatching(/^✓ Released {2}echo-/),
      "✓ Played    3 episodes, 3 scored",
      "✓ Scored    mean reward 1",
    ]);
    expect(stdout).toContain("0 instances left");
    expect(stdout).toContain("npx aenvironment init my-env --work-dir ..");
  });

  it("checks the version of Node in every script of the repository", () => {
    const { scripts } = JSON.parse(readFileSync(path("../package.json"), "utf8"));
    for (const name of ["quickstart", "test", "test:fast", "test:changed", "test:watch", "check", "bench", "build", "format"])
      expect(scripts[name]).toMatch(/^node scripts\/need-node\.js && /);
    expect(run(process.execPath, path("need-node.js"))).toMatchObject({ status: 0, stdout: "", stderr: "" });
  });
});

describeNeeding("old-node", "on an old Node", () => {
  it("prints the required version in one line", () => {
    const { status, stdout, stderr } = run(oldNode() ?? "", path("need-node.js"));
    expect(stdout + stderr).toMatch(/^AEnv needs Node 24 or newer, but this is \d+\.\d+\.\d+: .*\n$/);
    expect(status).toBe(1);
  });
});
