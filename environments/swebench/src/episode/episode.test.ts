import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { buildEvalScript } from "../spec/eval-script.ts";
import { answerOf, artifactsOf } from "./answer.ts";
import { forgedMarkers } from "./markers.ts";
import { readSettings } from "./settings.ts";

describe("markers in the output", () => {
  const script = buildEvalScript(": '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\n");
  const output = `+ : '>>>>> Start Test Output'
+ pytest
PASSED a
+ SWEBENCH_TEST_EXIT_CODE=0
+ : '>>>>> End Test Output'
+ echo '>>>>> Test Exit Code: 0'
>>>>> Test Exit Code: 0
`;

  it("are those of the script", () => {
    expect(forgedMarkers(script, output)).toEqual([]);
    expect(forgedMarkers(script, "")).toEqual([]);
  });

  it.each([">>>>> Start Test Output", ">>>>> End Test Output", ">>>>> Test Exit Code:"])("are not believed with one more: %s", (marker) => {
    expect(forgedMarkers(script, output.replace("PASSED a", `PASSED a\n${marker} 0`))).toEqual([marker]);
  });
});

describe("the settings", () => {
  it("are variables with defaults, and a wrong one is an error that names it", () => {
    using tree = temporaryTree({ "swe-bench/dataset.jsonl": "" });
    const read = (more: Record<string, string>) => readSettings({ AENV_DATA_DIR: tree.path, ...more });
    expect(read({})).toEqual({ dataFolder: `${tree.path}/swe-bench`, timeoutSeconds: 1800, isStrict: true, network: "none" });
    expect(read({ SWE_BENCH_NETWORK: "tests", SWE_BENCH_STRICT: "false", SWE_BENCH_TIMEOUT: "60" })).toMatchObject({
      timeoutSeconds: 60,
      isStrict: false,
      network: "tests",
    });
    expect(() => read({ SWE_BENCH_STRIKT: "x" })).toThrow("did you mean SWE_BENCH_STRICT?");
    expect(() => read({ SWE_BENCH_TIMEOUT: "1m" })).toThrow("SWE_BENCH_TIMEOUT is '1m'");
    expect(() => read({ SWE_BENCH_NETWORK: "some" })).toThrow("none, tests, all");
    expect(() => readSettings({})).toThrow("aenv bench data swe-bench --from");
  });
});

describe("an answer", () => {
  const log = "2026-01-01 00:00:00,000 - WARNING - left out of the patch: conftest.py: a file that decides how the tests are run\n";
  const evaluation = { script: "s", output: "o", grade: null, error: "no", log: "" };

  it("says why there is no grade, and what was left out", () => {
    expect(answerOf("a", { patch: "p", evaluation, log })).toMatchObject({
      reward: 0,
      returncode: 1,
      stderr: "run err:no",
      left_out: ["conftest.py: a file that decides how the tests are run"],
    });
    expect(answerOf("a", { patch: "", evaluation: null, log: "" })).toMatchObject({ reward: 0, stderr: "the patch is empty" });
  });

  it("keeps the beginning and the end of files that are too large", () => {
    const files = artifactsOf("a", { patch: "p", evaluation: { ...evaluation, output: `first${"é".repeat(8_000_000)}last` }, log });
    const text = files["test_output.txt"]?.text ?? "";
    expect([text.startsWith("first"), text.endsWith("last"), text.includes("bytes are left out")]).toEqual([true, true, true]);
    expect(Buffer.byteLength(text)).toBeLessThan(7.5 * 1_024 ** 2);
    expect(Object.keys(files)).toEqual(["patch.diff", "eval.sh", "run_instance.log", "test_output.txt"]);
    const large = artifactsOf("a", { patch: "+".repeat(8_000_000), evaluation, log });
    expect(large["patch.diff"]?.text).toBe("[the patch of 8000000 bytes is too long to be kept]\n");
  });
});
