import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isNamed } from "./needs.ts";

const fixture = fileURLToPath(new URL("../fixtures/needs", import.meta.url));
const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");

let folder = "";
let oldNode = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "aenv-needs-"));
  oldNode = join(folder, "node");
  writeFileSync(oldNode, "#!/bin/sh\necho 18.20.0\n");
  chmodSync(oldNode, 0o755);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the fixture's suites in a vitest of their own, on a machine that has an old Node but no Python. */
function run(env: Record<string, string>): { status: number | null; output: string } {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(VITEST|AENV_|VITE_|NODE_OPTIONS|FORCE_COLOR)/.test(name));
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, "run", "--root", fixture], {
    encoding: "utf8",
    env: { ...Object.fromEntries(inherited), NO_COLOR: "1", AENV_OLD_NODE: oldNode, AENV_WITHOUT: "python", ...env },
  });
  return { status, output: stdout + stderr };
}

describe("a suite that needs a component", () => {
  it("is skipped with the component and the reason in its name, and listed at the end", () => {
    const { status, output } = run({});
    expect(output).toContain("3 passed, 0 failed, 4 skipped");
    expect(output).toContain("python: left out by AENV_WITHOUT; 3 tests skipped");
    expect(output).toContain("to get it: interop/uv.sh venv interop/python/.venv");
    expect(output).not.toContain("old-node:");
    expect(status).toBe(0);
  });

  it.each(["all", "frameworks, python"])("fails with what to install when AENV_REQUIRE is '%s'", (AENV_REQUIRE) => {
    const { status, output } = run({ AENV_REQUIRE });
    expect(output).toContain("3 passed, 2 failed, 1 skipped");
    expect(output).toContain("python is required by AENV_REQUIRE but missing: left out by AENV_WITHOUT. To get it: interop/uv.sh venv");
    expect(output).toContain("the snake > needs python");
    expect(status).toBe(1);
  });

  it("is skipped although it is required when AENV_LEFT_OUT names it", () => {
    const { status, output } = run({ AENV_REQUIRE: "all,python", AENV_LEFT_OUT: "kubernetes,python" });
    expect(output).toContain("3 passed, 0 failed, 4 skipped");
    expect(output).toContain("python: no changed file reaches it; 3 tests skipped\n    to get it: run .ci/nightly");
    expect(status).toBe(0);
  });

  it("is skipped when AENV_REQUIRE lists only others", () => {
    expect(run({ AENV_REQUIRE: "old-node" }).output).toContain("3 passed, 0 failed, 4 skipped");
  });
});

describe("the line of counts", () => {
  it("counts a failing test", () => {
    expect(run({ BREAK: "test" }).output).toContain("2 passed, 1 failed, 4 skipped");
  });

  it.each([
    ["a file that does not load", "load", "1 passed, 2 failed, 4 skipped"],
    ["a hook that fails", "hook", "1 passed, 2 failed, 5 skipped"],
    ["a rejection that nobody handles", "stray", "2 passed, 2 failed, 4 skipped"],
  ])("counts %s as a failure, beside the failing test", (_, BREAK, counts) => {
    expect(run({ BREAK }).output).toContain(counts);
  });
});

describe("isNamed", () => {
  const word = fc.stringMatching(/^[a-z-]{1,8}$/);

  it("finds a name at any position of the list, with or without spaces", () => {
    fc.assert(
      fc.property(fc.array(word), word, fc.array(word), fc.constantFrom(",", ", ", " ,"), (before, name, after, comma) => {
        expect(isNamed(name, [...before, name, ...after].join(comma))).toBe(true);
      }),
    );
  });

  it("finds nothing in a list of other names, and nothing without a list", () => {
    fc.assert(
      fc.property(fc.array(word), word, (others, name) => {
        fc.pre(!others.includes(name) && !others.includes("all"));
        expect(isNamed(name, others.join(","))).toBe(false);
      }),
    );
    expect(isNamed("python", undefined)).toBe(false);
  });
});
