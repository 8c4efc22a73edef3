import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { formatProblem } from "./problem.ts";
import { checkProcessEnv } from "./process-env.ts";

describe("checkProcessEnv", () => {
  it("reports environment variables that the server reads", async () => {
    using tree = temporaryTree({
      "packages/server/src/a.ts": "const home =\n  process.env.HOME;\n",
      "packages/server/src/b.ts": 'import { env } from "node:process";\n',
    });
    expect((await checkProcessEnv(tree.path)).map(formatProblem)).toEqual([
      "packages/server/src/a.ts:2: this package reads no environment variables; pass the value as a parameter",
      "packages/server/src/b.ts:1: this package reads no environment variables; pass the value as a parameter",
    ]);
  });

  it("allows them in tests and in the command", async () => {
    using tree = temporaryTree({
      "packages/server/src/a.test.ts": "process.env.HOME;\n",
      "packages/aenv/src/a.ts": "process.env.HOME;\n",
    });
    expect(await checkProcessEnv(tree.path)).toEqual([]);
  });
});
