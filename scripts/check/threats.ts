import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { lineAt, type Problem } from "./problem.ts";

const PAGE = "docs/guides/threats.md";
const SETTINGS = "docs/reference/settings.md";

/** Tests, constants and settings that the page of threats names exist, with these names and figures. */
export async function checkThreats(root: string): Promise<readonly Problem[]> {
  const page = await readFile(join(root, PAGE), "utf8");
  const settings = await readFile(join(root, SETTINGS), "utf8");
  const problems: Problem[] = [];
  const report = (at: number, message: string) => problems.push({ file: PAGE, line: lineAt(page, at), message });
  /** The text of a linked file; null if it does not exist, which the check of links reports. */
  const read = async (target: string) => {
    const path = join(root, posix.join(dirname(PAGE), target));
    return existsSync(path) ? readFile(path, "utf8") : null;
  };
  for (const { target, names, at } of findTests(page)) {
    const source = await read(target);
    if (names.length === 0) report(at, `'${target}' is linked without the name of a test: write "…" after it`);
    for (const name of names) if (source !== null && !hasTest(source, name)) report(at, `'${target}' has no test "${name}"`);
  }
  for (const { figure, target, constant, at } of findFigures(page)) {
    const source = await read(target);
    const objection = source === null ? null : objectionTo(figure, constantIn(source, constant), `${constant} of '${target}'`);
    if (objection !== null) report(at, objection);
  }
  for (const { figure, setting, at } of findSettings(page)) {
    const objection = objectionTo(figure, defaultOf(setting, settings), `the default of '${setting}'`);
    if (objection !== null) report(at, objection);
  }
  for (const at of rowsWithoutTest(page)) report(at, "the row names no test");
  return problems;
}

/** `[file](path.test.ts) "name", "name"`. */
export function findTests(page: string): { target: string; names: string[]; at: number }[] {
  return [...page.matchAll(/\]\(([^)\s]+\.test\.ts)\)((?:,? "[^"]+")*)/g)].map(({ 1: target = "", 2: names = "", index }) => ({
    target,
    names: [...names.matchAll(/"([^"]+)"/g)].map(([, name]) => name as string),
    at: index,
  }));
}

/** `[32 MiB](path.ts "CONSTANT")`. */
export function findFigures(page: string): { figure: string; target: string; constant: string; at: number }[] {
  return [...page.matchAll(/\[([^\]]+)\]\(([^)\s]+\.ts) "(\w+)"\)/g)].map(
    ({ 1: figure = "", 2: target = "", 3: constant = "", index }) => ({
      figure,
      target,
      constant,
      at: index,
    }),
  );
}

/** ``20,000 ([`maxConnections`](../reference/settings.md))``. */
export function findSettings(page: string): { figure: string; setting: string; at: number }[] {
  const found = page.matchAll(/(\d[\d,.]*(?: [A-Za-z]+)?) \(\[`(\w+)`\]\(\.\.\/reference\/settings\.md\)\)/g);
  return [...found].map(({ 1: figure = "", 2: setting = "", index }) => ({ figure, setting, at: index }));
}

/** Whether a source has a test or a suite of this name. */
function hasTest(source: string, name: string): boolean {
  const literals = ['"', "'", "`"].map((quote) => quote + name.replaceAll(quote, `\\${quote}`) + quote);
  return literals.some((literal) => {
    for (let at = source.indexOf(literal); at >= 0; at = source.indexOf(literal, at + 1)) {
      // The component that `describeNeeding` needs is before the name.
      if (/(?:\b(?:it|test|describe)(?:\.\w+)*|\))\(\s*$|describeNeeding\([^()]*,\s*$/.test(source.slice(0, at))) return true;
    }
    return false;
  });
}

/** The value of `NAME = 32 * 1_024 ** 2` or `name: 200`; null if there is none that is such a product. */
function constantIn(source: string, name: string): number | null {
  for (const [, text = ""] of source.matchAll(new RegExp(`\\b${name}(?:: \\w+)?(?: = |: )([\\w.*< ]+?) ?[,;}]`, "g"))) {
    const product = productOf(text, source);
    if (!Number.isNaN(product)) return product;
  }
  return null;
}

function productOf(text: string, source: string): number {
  let product = 1;
  for (const factor of text.trim().split(" * ")) {
    const [, base = factor, operator = "**", exponent = "1"] = /^(\S+) (\*\*|<<) (\d+)$/.exec(factor) ?? [];
    product *= operator === "**" ? factorOf(base, source) ** Number(exponent) : factorOf(base, source) * 2 ** Number(exponent);
  }
  return product;
}

function factorOf(text: string, source: string): number {
  return /^[\d_.]+(?:e\d+)?$/.test(text) ? Number(text.replaceAll("_", "")) : (constantIn(source, text) ?? Number.NaN);
}

/** The column `Default` of the table of settings, as a number. */
function defaultOf(setting: string, settings: string): number | null {
  const row = settings.split("\n").find((line) => line.startsWith(`| \`${setting}\` |`));
  return amountOf(
    row
      ?.split(/(?<!\\)\|/)[4]
      ?.replaceAll("`", "")
      .trim() ?? "",
  );
}

const UNITS: Readonly<Record<string, number>> = {
  KiB: 1_024,
  MiB: 1_024 ** 2,
  GiB: 1_024 ** 3,
  ms: 1,
  s: 1_000,
  min: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  million: 1e6,
};

/** `20,000`, `32 MiB` and `30s` as a number: of bytes, of milliseconds, or of things. Null if it is none. */
function amountOf(text: string): number | null {
  const [, digits = "", unit = ""] = /^(\d[\d,.]*) ?([A-Za-z]*)/.exec(text) ?? [];
  return digits === "" ? null : Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? 1);
}

function objectionTo(figure: string, value: number | null, what: string): string | null {
  if (value === null) return `${what} is no figure that this check can read`;
  return amountOf(figure) === value ? null : `says '${figure}', and ${what} is ${value}`;
}

/** Offsets of the rows of tables whose last column is `Test` that name none. */
function rowsWithoutTest(page: string): number[] {
  const without: number[] = [];
  let at = 0;
  let isTable = false;
  for (const line of page.split("\n")) {
    if (/\| Test\s*\|$/.test(line)) isTable = true;
    else if (!line.startsWith("|")) isTable = false;
    else if (isTable && !/^\|[\s|:-]+\|$/.test(line) && findTests(line).length === 0) without.push(at);
    at += line.length + 1;
  }
  return without;
}
