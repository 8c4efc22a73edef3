import { readOutput } from "../grading/report.ts";
import { insertBeforeTests } from "../spec/eval-script.ts";
import { END_MARKER, START_MARKER } from "../spec/markers.ts";
import type { EvalSpec } from "../spec/spec.ts";
import { appendedTest } from "./appended-test.ts";

/** A test that must fail, beside those of the instance: code of the patch that makes all tests pass is found by it. */
export interface Canary {
  /** With a script that writes the test and runs it too. */
  readonly spec: EvalSpec;
  /** A part of the test's name that no other test has. */
  readonly test: string;
}

/** A plain command of pytest, with the options and files as its arguments. */
const PYTEST = /^(?:[A-Za-z_]\w*=\S* )*(?:\S*\/)?(?:pytest|py\.test|python3? -m pytest)((?: [^\s;&|<>`$()]+)+) *$/;
const FILE = / ((?:[\w.-]+\/)*)[\w.-]+\.py(?=::| |$)/;
/** Options that could leave the test out. */
const SELECTING = / (?:-\w*[kmx]|--(?:maxfail|exitfirst|deselect|ignore|lf|last-failed|ff|sw|stepwise)\b)/;

/** Null if the tests are run in a way to which one cannot be added safely. */
export function addCanary(spec: EvalSpec, id: string, testPatch: string): Canary | null {
  const lines = spec.evalScript.split("\n");
  const [start = -1, end = -1] = [START_MARKER, END_MARKER].map((marker) => lines.findIndex((line) => line.includes(marker)));
  if (start < 0) return null;
  const commands = lines.slice(start + 1, end).filter((line) => !line.startsWith("SWEBENCH_TEST_EXIT_CODE="));
  const at = lines.findLastIndex((line, i) => i > start && i < end && PYTEST.test(line));
  if (at >= 0) return withFile(spec, lines, at, id);
  const append = appendedTest(commands, testPatch, id);
  return append === null ? null : { spec: { ...spec, evalScript: insertBeforeTests(spec.evalScript, [append]) }, test: id };
}

/** A new file beside those that pytest runs. */
function withFile(spec: EvalSpec, lines: readonly string[], at: number, id: string): Canary | null {
  const [, options = ""] = PYTEST.exec(lines[at] ?? "") ?? [];
  const [, folder] = FILE.exec(options) ?? [];
  if (folder === undefined || SELECTING.test(options)) return null;
  const file = `${folder}test_${id}.py`;
  const script = lines.with(at, `${lines[at]?.trimEnd()} ${file}`).join("\n");
  const write = `printf 'def test_${id}():\\n    assert False\\n' > ${file}`;
  return { spec: { ...spec, evalScript: insertBeforeTests(script, [write]) }, test: `${file}::test_${id}` };
}

/** Whether the test has failed, as it must. */
export function hasFailed({ spec, test }: Canary, output: string): boolean {
  for (const [name, status] of readOutput(spec, Buffer.from(output)).map) {
    if (name.includes(test) && (status === "FAILED" || status === "ERROR")) return true;
  }
  return false;
}
