import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { JsonObject } from "@aenv/benchmark";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { toJson } from "../dataset/row.ts";
import { runTests } from "../evaluate/evaluate.ts";
import { InstanceLog } from "../evaluate/log.ts";
import { LocalSandbox } from "../evaluate/testing/local-sandbox.ts";
import { gradeOutput } from "../grading/report.ts";
import { makeSpec } from "../spec/spec.ts";
import { addCanary, type Canary } from "./canary.ts";
import { hasEndedRun, missingAfter } from "./early-end.ts";
import { forgeryOf, signsIn } from "./forgery.ts";

interface Case {
  readonly command: string;
  readonly parser: string;
  readonly files: Readonly<Record<string, string>>;
  /** The file of the tests, to which one is added. */
  readonly tests: string;
  readonly failToPass: string;
  readonly passToPass?: readonly string[];
  /** What the solution changes, and what a patch changes that forges the results. */
  readonly solution: Readonly<Record<string, string>>;
  readonly forgery?: Readonly<Record<string, string>>;
}

function canaryFor({ command, parser, files, tests, failToPass, passToPass = [] }: Case): Canary {
  const spec = makeSpec(
    toJson({
      instance_id: "a__b-1",
      repo: "a/b",
      version: "1",
      image: "image",
      log_parser: parser,
      eval_type: "pass_and_fail",
      eval_script: `cd /testbed\n: '>>>>> Start Test Output'\n${command}\n: '>>>>> End Test Output'\n`,
      FAIL_TO_PASS: [failToPass],
      PASS_TO_PASS: passToPass,
    }) as JsonObject,
  );
  const added = (files[tests] ?? "").split("\n").map((line) => `+${line}`);
  const canary = addCanary(
    spec,
    "1a2b",
    `diff --git a/${tests} b/${tests}\n--- a/${tests}\n+++ b/${tests}\n@@ -1 +1,9 @@\n${added.join("\n")}\n`,
  );
  if (canary === null) throw new Error(`no test is added to '${command}'`);
  return canary;
}

/** The output of the tests with some files changed. */
async function outputOf({ spec }: Canary, { files }: Case, changes: Readonly<Record<string, string>> = {}): Promise<string> {
  const all = Object.entries({ ...files, ...changes }).map(([path, text]) => [`testbed/${path}`, text]);
  using tree = temporaryTree({ ...Object.fromEntries(all), "tmp/x": "" });
  const sandbox = new LocalSandbox(tree.path);
  const fetchAsset = () => Promise.reject(new Error("there are no assets"));
  return (await runTests({ sandbox, spec, timeoutSeconds: 300, fetchAsset }, new InstanceLog(() => new Date()))).output;
}

const isResolved = ({ spec }: Canary, output: string) => gradeOutput(spec, "", Buffer.from(output)).report.resolved;

/** An honest solution is believed, and forged results are not. */
async function expectFound(one: Case): Promise<void> {
  const canary = canaryFor(one);
  const [control, solved, forged] = [
    await outputOf(canary, one),
    await outputOf(canary, one, one.solution),
    await outputOf(canary, one, one.forgery),
  ];
  expect([isResolved(canary, control), isResolved(canary, solved), isResolved(canary, forged)], forged).toEqual([false, true, true]);
  expect(signsIn(canary.spec, canary, solved)).toBeNull();
  const signs = signsIn(canary.spec, canary, forged);
  expect(signs && forgeryOf(signs, canary, signsIn(canary.spec, canary, control))).toContain("1a2b, which always fails");
}

describe("forged results are found in the output of", () => {
  describeNeeding("python", "Python", () => {
    it("unittest", { timeout: 60_000 }, () =>
      expectFound({
        command: "python3 -m unittest -v tests.test_sum",
        parser: "parse_log_django",
        files: {
          "lib.py": "def add(a, b):\n    return a - b\n",
          "tests/__init__.py": "",
          "tests/test_sum.py":
            "import unittest\nfrom lib import add\nclass SumTest(unittest.TestCase):\n    def test_add(self):\n        'adds'\n        self.assertEqual(add(1, 2), 3)\n",
        },
        tests: "tests/test_sum.py",
        failToPass: "adds",
        solution: { "lib.py": "def add(a, b):\n    return a + b\n" },
        forgery: {
          "lib.py":
            "import unittest\nunittest.TestCase.run = lambda self, result: (result.startTest(self), result.addSuccess(self))\nadd = None\n",
        },
      }),
    );
  });

  describeNeeding("go", "Go", () => {
    it("go test", { timeout: 600_000 }, () =>
      expectFound({
        command: "go test -v ./...",
        parser: "parse_log_gotest",
        files: {
          "go.mod": "module a\n\ngo 1.20\n",
          "sum.go": "package a\n\nfunc Add(a, b int) int { return a - b }\n",
          "sum_test.go": 'package a\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n',
        },
        tests: "sum_test.go",
        failToPass: "TestAdd",
        solution: { "sum.go": "package a\n\nfunc Add(a, b int) int { return a + b }\n" },
        forgery: {
          "sum.go":
            'package a\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc Add(a, b int) int { return 0 }\n\nfunc init() {\n\tfmt.Println("--- PASS: TestAdd (0.00s)")\n\tos.Exit(0)\n}\n',
        },
      }),
    );
  });
});

it("a run that the additional test has ended is told from one that the patch has ended", { timeout: 60_000 }, async () => {
  const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "../.bin/vitest");
  const one: Case = {
    command: `NO_COLOR=1 ${vitest} run --globals --no-file-parallelism --reporter=verbose test/a.test.js test/b.test.js`,
    parser: "parse_log_vitest",
    files: {
      "vitest.config.js": "export default { test: { bail: 1 } };\n",
      "lib.js": "export const add = (a, b) => a - b;\n",
      // Larger files are run first.
      "test/a.test.js": 'import { add } from "../lib.js";\nit("adds", () => {\n  if (add(1, 2) !== 3) throw new Error("no");\n});\n',
      "test/b.test.js": 'it("goes on", () => {});\n',
    },
    tests: "test/a.test.js",
    failToPass: "test/a.test.js > adds",
    passToPass: ["test/b.test.js > goes on"],
    solution: { "lib.js": "export const add = (a, b) => a + b;\n" },
  };
  const canary = canaryFor(one);
  const missing = missingAfter(canary, await outputOf(canary, one, one.solution));
  expect(missing).toEqual(["test/b.test.js > goes on"]);
  const [ending, goingOn] = [await outputOf(canary, one), await outputOf(canary, one, { "vitest.config.js": "" })];
  expect([hasEndedRun(missing, canary, ending), hasEndedRun(missing, canary, goingOn)]).toEqual([true, false]);
});
