import { END_MARKER, START_MARKER } from "../eval-script/markers.ts";
import { insertBeforeTests } from "../eval-script/script.ts";
import { readOutput } from "../grading/report.ts";
import { getLogParser } from "../parsers/registry.ts";
import type { EvalSpec } from "../spec/spec.ts";

/** A test that must fail, beside those of the instance: code of the patch that makes all tests pass is found by it. */
export interface Canary {
  /** With a script that writes the test and runs it too. */
  readonly spec: EvalSpec;
  readonly test: string;
}

/** A plain command of pytest, with the options and files as its arguments. */
const PYTEST = /^(?:[A-Za-z_]\w*=\S* )*(?:\S*\/)?(?:pytest|py\.test|python3? -m pytest)((?: [^\s;&|<>`$()]+)+) *$/;
const FILE = / ((?:[\w.-]+\/)*)[\w.-]+\.py(?=::| |$)/;
/** Options that could leave the test out. */
const SELECTING = / (?:-\w*[kmx]|--(?:maxfail|exitfirst|deselect|ignore|lf|last-failed|ff|sw|stepwise)\b)/;

/** Null if the tests are not those of pytest, or are run in a way to which one cannot be added with certainty. */
export function addCanary(spec: EvalSpec, id: string): Canary | null {
  const lines = spec.evalScript.split("\n");
  const [start, end] = [START_MARKER, END_MARKER].map((marker) => lines.findIndex((line) => line.includes(marker)));
  const at = lines.findLastIndex((line, i) => i > (start ?? -1) && i < (end ?? -1) && PYTEST.test(line));
  const [, options = ""] = PYTEST.exec(lines[at] ?? "") ?? [];
  const [, folder] = FILE.exec(options) ?? [];
  if (start === -1 || folder === undefined || SELECTING.test(options)) return null;
  const file = `${folder}test_${id}.py`;
  const test = `${file}::test_${id}`;
  const isRead = getLogParser(spec.logParser)(`FAILED ${test} - assert False\n`, spec).get(test) === "FAILED";
  if (!isRead) return null;
  const script = lines.with(at, `${lines[at]?.trimEnd()} ${file}`).join("\n");
  const write = `printf 'def test_${id}():\\n    assert False\\n' > ${file}`;
  return { spec: { ...spec, evalScript: insertBeforeTests(script, [write]) }, test };
}

/** Whether the test has failed, as it must. */
export function hasFailed({ spec, test }: Canary, output: string): boolean {
  return readOutput(spec, Buffer.from(output)).map.get(test) === "FAILED";
}
