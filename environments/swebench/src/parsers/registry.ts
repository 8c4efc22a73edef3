import { PyError } from "@aenv/benchmark";
import { parseGoogletest, parseJq, parseMicropythonTest, parseRedis } from "./c/c.ts";
import { parseDoctest } from "./c/doctest.ts";
import { parseAnt, parseGradleCustom, parseMaven } from "./java.ts";
import { parseCalypso, parseCarbon, parseGrommet, parseImmutableJs, parseJest, parseJestJson, parseVitest } from "./javascript/jest.ts";
import { parseBpmnJs, parseChartJs, parseKarma, parseOpenlayers } from "./javascript/karma.ts";
import { parseLighthouse } from "./javascript/lighthouse.ts";
import { parseEslint, parseHighlightjs, parseMarked } from "./javascript/mocha.ts";
import { parseNext } from "./javascript/next.ts";
import { parseP5js } from "./javascript/p5js.ts";
import { parsePrismjs } from "./javascript/prismjs.ts";
import { parseQuartoCli } from "./javascript/quarto.ts";
import { parseTap } from "./javascript/tap.ts";
import { parseCargo, parseGotest, parsePhpunit } from "./other.ts";
import type { LogParser } from "./parser.ts";
import { parseDjango } from "./python/django.ts";
import { parseMatplotlib, parsePytest, parsePytestOptions, parsePytestV2 } from "./python/pytest.ts";
import { parseSeaborn } from "./python/seaborn.ts";
import { parseSympy } from "./python/sympy.ts";
import { parseCucumber, parseJekyll, parseMinitest, parseRspecTransformedJson, parseRubyUnit } from "./ruby.ts";

/** 44 parsers by the names that rows use, without the prefix of all names. */
const PARSERS: readonly (readonly [parser: LogParser, ...names: string[]])[] = [
  [parsePytest, "pytest", "astroid", "flask", "marshmallow", "pvlib", "pyvista", "sqlfluff", "xarray"],
  [parsePytestOptions, "pytest_options", "pydicom", "requests", "pylint"],
  [parseMatplotlib, "matplotlib"],
  [parsePytestV2, "pytest_v2", "astropy", "scikit", "sphinx"],
  [parseSeaborn, "seaborn"],
  [parseSympy, "sympy"],
  [parseDjango, "django"],
  [parseCalypso, "calypso"],
  [parseBpmnJs, "bpmn_js"],
  [parseCarbon, "carbon"],
  [parseEslint, "eslint"],
  [parseGrommet, "grommet"],
  [parseHighlightjs, "highlightjs"],
  [parseLighthouse, "lighthouse"],
  [parseNext, "next"],
  [parseOpenlayers, "openlayers"],
  [parsePrismjs, "prismjs"],
  [parseQuartoCli, "quarto_cli"],
  [parseChartJs, "chart_js"],
  [parseMarked, "marked"],
  [parseP5js, "p5js"],
  // The reference has a parser of its own for react-pdf, with the same behaviour.
  [(log) => parseCarbon(log), "react_pdf"],
  [parseJest, "jest"],
  [parseJestJson, "jest_json"],
  [parseVitest, "vitest"],
  [parseKarma, "karma"],
  [parseTap, "tap"],
  [parseImmutableJs, "immutable_js"],
  [parseRedis, "redis"],
  [parseJq, "jq"],
  [parseDoctest, "doctest"],
  [parseMicropythonTest, "micropython_test"],
  [parseGoogletest, "googletest"],
  [parseGotest, "gotest"],
  [parseCargo, "cargo"],
  [parsePhpunit, "phpunit"],
  [parseMaven, "maven"],
  [parseAnt, "ant"],
  [parseGradleCustom, "gradle_custom"],
  [parseMinitest, "minitest"],
  [parseCucumber, "cucumber"],
  [parseRubyUnit, "ruby_unit"],
  [parseRspecTransformedJson, "rspec_transformed_json"],
  [parseJekyll, "jekyll"],
];

/** Parsers by their name in the column `log_parser`. */
export const logParsers: ReadonlyMap<string, LogParser> = new Map(
  PARSERS.flatMap(([parser, ...names]) => names.map((name) => [`parse_log_${name}`, parser] as const)),
);

export function getLogParser(name: string): LogParser {
  const parser = logParsers.get(name);
  if (parser === undefined) throw new PyError("KeyError", `there is no log parser '${name}'; names start with parse_log_`);
  return parser;
}
