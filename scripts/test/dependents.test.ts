import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { affectedTests, readUses, testsOf, type Uses } from "./dependents.ts";

const graph = (files: Record<string, string[]>): Uses => new Map(Object.entries(files).map(([file, used]) => [file, new Set(used)]));

describe("the tests that a change can affect", () => {
  it("are those that use a changed file directly or through others, also in a ring", () => {
    const uses = graph({ "a.test.ts": ["a.ts"], "b.test.ts": ["b.ts"], "a.ts": ["c.ts"], "b.ts": [], "c.ts": ["a.ts", "data.json"] });
    expect(affectedTests(uses, ["data.json"])).toEqual(["a.test.ts"]);
    expect(affectedTests(uses, ["b.test.ts"])).toEqual(["b.test.ts"]);
    expect(affectedTests(uses, ["README.md"])).toEqual([]);
  });

  it("are all tests for what every test loads", () => {
    const uses = graph({ "a.test.ts": [], "b.test.ts": [] });
    for (const file of ["package-lock.json", "vitest.config.ts"]) expect(affectedTests(uses, [file])).toEqual(testsOf(uses));
  });
});

describe("what the files of this repository use", async () => {
  const uses = await readUses(fileURLToPath(new URL("../..", import.meta.url)));
  const cases: [string, string][] = [
    ["packages/contract/src/errors.ts", "packages/sdk/src/environment/environment.local.test.ts"],
    // Read by path, or started as a program.
    ["docs/guides/threats.md", "packages/aenv/src/first-use/docs.test.ts"],
    ["python/aenv_client/errors.py", "interop/python-rl/client.test.ts"],
    ["packages/sandbox/init/main.go", "packages/sandbox/src/init/program.test.ts"],
    ["environments/mini-terminal/config.json", "interop/python/mini_terminal.test.ts"],
    ["packages/aenv/src/platform-tests/crash/fixtures/server.ts", "packages/aenv/src/platform-tests/crash.test.ts"],
    ["packages/kit/package.json", "packages/kit/src/serve/run.test.ts"],
  ];
  it.each(cases)("%s reaches %s", (changed, test) => {
    expect(testsOf(uses)).toContain(test);
    expect(affectedTests(uses, [changed])).toContain(test);
  });

  it("leaves most tests out for a change of one environment, and all for a file that no test uses", () => {
    expect(affectedTests(uses, ["environments/tau2/src/index.ts"]).length).toBeLessThan(testsOf(uses).length / 10);
    expect(affectedTests(uses, ["LICENSE"])).toEqual([]);
  });
});
