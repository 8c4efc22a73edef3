/** Lines that a test runner prints beside its results. */
const NOISE = [
  '  File "/testbed/src/module/core.py", line 120, in evaluate',
  "    return self.handler(request, *args, **kwargs)",
  "Building wheel for package (pyproject.toml): started",
  "warning: unused variable `index` in crate/src/lib.rs:31:9",
  "[INFO] Compiling 312 source files to /testbed/target/classes",
  "      at Object.<anonymous> (/testbed/packages/core/src/index.js:14:7)",
  "",
  "    expected value to equal 3 but received 4",
];

/** What a parser needs around the results, and the results of the test number `i`. */
interface Shape {
  readonly head?: string;
  readonly tail?: string;
  /** All results are printed twice, with this between. */
  readonly middle?: string;
  readonly results: (i: number) => readonly string[];
  /** No other output is between the results: its indentation, or any text, has a meaning. */
  readonly isPure?: boolean;
  readonly version?: string;
  readonly instanceId?: string;
}

const pytest: Shape = {
  results: (i) => [
    `PASSED tests/test_core.py::TestCore::test_value[${i}-x]`,
    `FAILED tests/test_core.py::test_${i} - AssertionError: ${i}`,
  ],
};
const carbon: Shape = {
  results: (i) => [`PASS packages/core/src/component-${i}.test.js (5.${i} s)`, `FAIL packages/core/other-${i}.test.js`],
};
/** Karma prints its progress after every test, and the names of those that failed. */
const karmaFailure = (browser: string): Shape => ({
  results: (i) => [
    ...[0, 1, 2, 3].map((n) => `${browser}: Executed ${4 * i + n} of 9000 (${i} FAILED) (1.${n} secs / 0.${n} secs)`),
    `${browser} core value ${i} is computed FAILED`,
  ],
});

const mochaTest = (i: number, end: string): string =>
  [
    ...["    {", `      "title": "computes value ${i}",`, `      "fullTitle": "core computes value ${i}",`],
    ...[
      '      "file": "/testbed/tests/core.js",',
      `      "duration": ${(i * 7) % 13},`,
      '      "currentRetry": 0,',
      '      "speed": "fast",',
    ],
    ...['      "err": {}', `    }${end}`],
  ].join("\n");

/** Logs as the runners print them, by parser. */
export const shapes: Readonly<Record<string, Shape>> = {
  pytest,
  pytest_options: pytest,
  matplotlib: pytest,
  pytest_v2: pytest,
  seaborn: { results: (i) => [`tests/test_core.py::test_${i} PASSED [ 12%]`, `FAILED tests/test_core.py::test_${i}`] },
  sympy: { results: (i) => [`test_value_${i} ok`, `test_other_${i} F`, `________ sympy/core/tests/test_basic.py:test_${i} ________`] },
  django: { results: (i) => [`test_value_${i} (core.tests.CoreTests) ... ok`, `test_other_${i} (core.tests.CoreTests) ... FAIL`] },
  calypso: { head: "+ ./node_modules/.bin/jest --x", results: (i) => ["  suite", `    ✓ computes value ${i} (3ms)`, `    ✕ fails ${i}`] },
  bpmn_js: karmaFailure("HeadlessChrome 79.0.3945 (Linux 0.0.0)"),
  carbon,
  react_pdf: carbon,
  eslint: { results: (i) => [`  ${i}) core`, `       computes value ${i}:`, "     AssertionError: no"] },
  grommet: carbon,
  highlightjs: { results: (i) => ["  suite", `    ✓ computes ${i} (3ms)`, `    ${i}) fails`] },
  lighthouse: {
    head: "running 12 test files",
    results: (i) => ["  suite", `    ✔ computes ${i} (3ms)`, `    ${i}) fails`],
    version: "10.0",
  },
  next: { head: "+ xvfb-run x\nStarting browser Chrome", results: (i) => ["  suite", `    ✓ computes ${i}`, `    ✗ fails ${i}`] },
  openlayers: karmaFailure("Chrome Headless 79.0 (Linux x86_64)"),
  prismjs: {
    isPure: true,
    head: '+ ./node_modules/.bin/mocha tests/run.js --reporter json\n{\n  "stats": { "suites": 1 },\n  "tests": [',
    middle: `${mochaTest(0, "")}\n  ],\n  "pending": [],\n  "failures": [],\n  "passes": [`,
    tail: `${mochaTest(0, "")}\n  ]\n}`,
    results: (i) => [mochaTest(i, ",")],
  },
  quarto_cli: {
    results: (i) => [`[smoke] > render /tmp/abc${i}.qmd ... \u001b[32mok\u001b[39m`, `[unit] > value ${i} ... \u001b[31mFAILED`],
  },
  chart_js: karmaFailure("Chrome 79.0.3945 (Linux)"),
  marked: { results: (i) => [`${i}) computes value ${i}`] },
  p5js: { results: (i) => [`  ${i}) suite`, `       computes value ${i}:`] },
  jest: { results: (i) => [`    ✓ computes value ${i} (3 ms)`, `    ✕ fails ${i}`] },
  jest_json: { results: (i) => [`[PASSED] computes value ${i}`, `[FAILED] fails ${i}`] },
  vitest: { results: (i) => [` ✓ test/core.test.ts > computes value ${i} 3ms`, ` × test/core.test.ts > fails ${i}`] },
  karma: { isPure: true, head: "Starting browser Chrome", results: (i) => [`    ✔ computes value ${i}`, `    ✖ fails ${i}`] },
  tap: { results: (i) => [`ok ${i} computes value`, `not ok ${i} fails`] },
  immutable_js: { results: (i) => [`    ✓ computes value ${i} (3 ms)`], instanceId: "immutable-js__immutable-js-2006" },
  redis: { results: (i) => [`[ok]: computes value ${i} (3 ms)`, `[err]: fails ${i} in tests/unit/core.tcl`] },
  jq: { results: (i) => [`PASS: tests/value${i}`, `FAIL: tests/other${i}`] },
  doctest: {
    isPure: true,
    head: '<doctest binary="core">',
    tail: "</doctest>",
    results: (i) => [`<TestCase name="core ${i}"><SubCase name="value"><Expression success="true"/></SubCase></TestCase>`],
  },
  micropython_test: { results: (i) => [`pass  basics/value${i}.py`, `FAIL  basics/other${i}.py`] },
  googletest: { results: (i) => [`[       OK ] Core.Value${i} (3 ms)`, `[  FAILED  ] Core.Other${i} (3 ms)`] },
  gotest: { results: (i) => [`--- PASS: TestValue${i} (0.03s)`, `--- FAIL: TestOther${i} (0.03s)`] },
  cargo: { results: (i) => [`test core::value_${i} ... ok`, `test core::other_${i} ... FAILED`] },
  phpunit: { results: (i) => [`Core ${i} (Tests\\Core)`, ` ✔ Computes value ${i}`, ` ✘ Fails ${i}`] },
  maven: { results: (i) => [`+ mvn test -Dtest=CoreTest#value${i} -pl core`, "[INFO] BUILD SUCCESS"] },
  ant: { results: (i) => [`    [junit] [PASS] core.Value${i}`, `    [junit] [FAIL] core.Other${i}`] },
  gradle_custom: { results: (i) => [`CoreTest > computes${i} PASSED`, `CoreTest > fails${i} FAILED`] },
  minitest: { results: (i) => [`TestCore#test_value. ${i} = 0.03 s = .`, `TestCore#test_other. ${i} = 0.03 s = F`] },
  cucumber: { results: (i) => [`features/value${i}.feature ......`, `features/other${i}.feature ....F`] },
  ruby_unit: { results: (i) => [`  test: computes value ${i}:  .: (0.03)`, `  fails ${i}:  F`] },
  rspec_transformed_json: { results: (i) => [`Core computes value ${i} - passed`, `Core fails ${i} - failed`] },
  jekyll: { results: (i) => [`TestCore#test_value. ${i} = 0.03 s = .`], instanceId: "jekyll__jekyll-9141" },
};

export interface GeneratedLog {
  readonly parser: string;
  readonly log: string;
  readonly instanceId: string;
  readonly version: string;
}

/** A log of about this many characters for each parser: four lines of other output per group of results. */
export function generateLogs(length: number): GeneratedLog[] {
  return Object.entries(shapes).map(([name, { head, middle, tail, results, isPure = false, version = "1.0", instanceId = "x__y-1" }]) => {
    const printed: string[] = [];
    for (let size = 0, i = 1; size < (middle === undefined ? length : length / 2); i++) {
      const group = [...results(i), ...(isPure ? [] : [0, 1, 2, 3].map((n) => NOISE[(i * 3 + n) % NOISE.length] ?? ""))];
      for (const line of group) size += line.length + 1;
      printed.push(...group);
    }
    const twice = middle === undefined ? [] : [middle, ...printed];
    const lines = [head, ...printed, ...twice, tail].filter((line) => line !== undefined);
    return { parser: `parse_log_${name}`, log: lines.join("\n"), instanceId, version };
  });
}
