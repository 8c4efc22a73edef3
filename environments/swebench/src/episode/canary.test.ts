import type { JsonObject } from "@aenv/benchmark";
import { describe, expect, it } from "vitest";
import { toJson } from "../dataset/row.ts";
import { makeSpec } from "../spec/spec.ts";
import { addCanary, hasFailed } from "./canary.ts";

function canaryOf(command: string, { parser = "parse_log_pytest", testPatch = "" } = {}) {
  const spec = makeSpec(
    toJson({
      instance_id: "a__b-1",
      repo: "a/b",
      version: "1",
      image: "image",
      log_parser: parser,
      eval_type: "pass_and_fail",
      eval_script: `cd /testbed\n: '>>>>> Start Test Output'\n${command}\n: '>>>>> End Test Output'\ngit checkout x\n`,
      FAIL_TO_PASS: ["tests/test_a.py::test_a"],
      PASS_TO_PASS: [],
    }) as JsonObject,
  );
  return addCanary(spec, "1a", testPatch);
}

describe("a test that must fail", () => {
  it("is written and run beside the tests of the instance", () => {
    const canary = canaryOf("pytest -rA tests/unit/test_a.py tests/test_b.py");
    expect(canary?.test).toBe("tests/unit/test_1a.py::test_1a");
    expect(canary?.spec.evalScript).toContain(`cd /testbed
printf 'def test_1a():\\n    assert False\\n' > tests/unit/test_1a.py
: '>>>>> Start Test Output'
pytest -rA tests/unit/test_a.py tests/test_b.py tests/unit/test_1a.py
SWEBENCH_TEST_EXIT_CODE=$?
`);
  });

  it.each([
    ["python -m pytest -rA test_a.py", "test_1a.py::test_1a"],
    ["A=1 python3 -m pytest -rA lib/a/test_a.py::test_x", "lib/a/test_1a.py::test_1a"],
    ["pytest -rA -vv -o console_output_style=classic --tb=no tests/test_a.py", "tests/test_1a.py::test_1a"],
  ])("is added to %s", (command, test) => {
    expect(canaryOf(command)?.test).toBe(test);
  });

  it.each([
    "./tests/runtests.py --verbosity 2 a.b",
    "node --test test/a.js",
    "pytest -rA tests/test_a.py | tee log",
    "pytest -rA $(ls tests/*.py)",
    "pytest -rA -x tests/test_a.py",
    "pytest -rA -k name tests/test_a.py",
    "pytest -rA --maxfail=1 tests/test_a.py",
    "pytest -rA",
  ])("is not added to %s", (command) => {
    expect(canaryOf(command)).toBeNull();
  });

  const patchOf = (path: string, line: string) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1 +1,2 @@\n+${line}\n`;

  it.each([
    ["node --test-reporter=tap test/a.test.js", "test/a.test.js", '  test("x", () => {', 'test("1a", () => { throw new Error("1a"); });'],
    ["npx jest test/a.test.ts", "test/a.test.ts", '  it("x", () => {', 'it("1a", () => { throw new Error("1a"); });'],
    ["./node_modules/.bin/mocha test/a.js", "test/a.js", 'it("x", f)', 'it("1a", () => { throw new Error("1a"); });'],
    ["go test -v ./pkg/...", "pkg/a_test.go", "func TestA", 'func Test_1a(t *testing.T) { t.Fatal("1a") }'],
    ["./tests/runtests.py --verbosity 2 admin.tests", "tests/admin/tests.py", "x", "class Test_1a(unittest.TestCase):"],
  ])("is added to the file of %s", (command, path, line, test) => {
    const canary = canaryOf(command, { testPatch: patchOf(path, line) });
    expect(canary?.test).toBe("1a");
    const script = canary?.spec.evalScript ?? "";
    expect(script).toMatch(/^printf .* >> \S+\n: '>>>>> Start/m);
    expect(script).toContain(test);
    expect(script).toContain(` >> ${path}\n`);
  });

  it.each([
    ["npx jest --bail test/a.test.js", "test/a.test.js", 'it("x", () => {'],
    ["npx jest -t name test/a.test.js", "test/a.test.js", 'it("x", () => {'],
    ["npx jest test/a.test.js", "test/a.test.js", 'check("x", () => {'],
    ["npx jest test/b.test.js", "test/a.test.js", 'it("x", () => {'],
    ["npx jest test/a.test.js && npx jest test/b.test.js", "test/a.test.js", 'it("x", () => {'],
    ["go test -run TestA ./pkg", "pkg/a_test.go", "func TestA"],
    ["cargo test --all", "src/a_test.rs", "#[test]"],
  ])("is not added to the file of %s", (command, path, line) => {
    expect(canaryOf(command, { testPatch: patchOf(path, line) })).toBeNull();
  });

  it("must be in the output as failed", () => {
    const canary = canaryOf("pytest -rA tests/test_a.py");
    const outputOf = (results: string, code: number) =>
      `+ : '>>>>> Start Test Output'\n${results}+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: ${code}\n`;
    if (canary === null) throw new Error("there is none");
    const passed = "PASSED tests/test_a.py::test_a\n";
    expect(hasFailed(canary, outputOf(`${passed}FAILED ${canary.test} - assert False\n`, 1))).toBe(true);
    expect(hasFailed(canary, outputOf(`${passed}PASSED ${canary.test}\n`, 0))).toBe(false);
    expect(hasFailed(canary, outputOf(passed, 0))).toBe(false);
  });
});
