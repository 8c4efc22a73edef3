import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { listFiles } from "./files.ts";
import { lineAt, type Problem } from "./problem.ts";

/** Words that are not used, and the word that is used instead: one word per thing. */
const replaced: Readonly<Record<string, string>> = {
  box: "sandbox",
  boxes: "sandboxes",
  seat: "slot",
  seats: "slots",
  seated: "placed",
  door: "agent API or trainer API",
  doors: "agent API and trainer API",
  tape: "recording",
  tapes: "recordings",
  shelf: "pool or cache",
  shelves: "pools or caches",
};

/** Files in which a replaced word is allowed, with the reason. */
const exceptions: readonly { readonly files: RegExp; readonly words: RegExp; readonly reason: string }[] = [
  { files: /^environments\/tau2\//, words: /^(?:seat|door|shelf)/, reason: "data and tools of the benchmark: seats of a flight, a shelf" },
  {
    files: /^(?:packages\/server\/src\/operations\/(?:call-)?metrics|deploy\/grafana\/)/,
    words: /^door$/,
    reason: "a label of published metrics, which dashboards use",
  },
  { files: /^(?:CHANGELOG|LICENSE)/, words: /./, reason: "describes past versions, or is written by others" },
  { files: /^scripts\/check\/words/, words: /./, reason: "lists the words" },
  { files: /^python\/aenv_client\/gymnasium\.py$/, words: /^box$/i, reason: "a space of Gymnasium" },
];

const TEXT = /\.(?:[mc]?[jt]s|md|py|json|html|css)$/;
const GENERATED = /(?:^|\/)package-lock\.json$|^bench\/results\//;

/** Fails on a replaced word in file names, identifiers, comments and docs. */
export async function checkWords(root: string): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const file of await listFiles(root)) {
    if (!TEXT.test(file) || GENERATED.test(file)) continue;
    for (const { word } of findWords(file)) if (!isException(file, word)) problems.push({ file, message: advice(word) });
    const text = await readFile(join(root, file), "utf8");
    for (const { word, at } of findWords(text)) {
      if (!isException(file, word)) problems.push({ file, line: lineAt(text, at), message: advice(word) });
    }
  }
  return problems;
}

/** Each replaced word in a text, also as a part of a name: `boxId`, `ProcessBox`, `AENV_BOX`. */
export function findWords(text: string): { readonly word: string; readonly at: number }[] {
  const found: { word: string; at: number }[] = [];
  for (const match of text.matchAll(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g)) {
    const word = match[0].toLowerCase();
    if (Object.hasOwn(replaced, word) && !isCss(text.slice(0, match.index), text.slice(match.index + word.length)))
      found.push({ word, at: match.index });
  }
  return found;
}

/** `box-sizing` and `box-shadow` are properties of CSS, and `border-box` is a value. */
function isCss(before: string, after: string): boolean {
  return /^-(?:sizing|shadow)/.test(after) || /\b(?:border|content|padding)-$/.test(before.slice(-8));
}

function isException(file: string, word: string): boolean {
  return exceptions.some(({ files, words }) => files.test(file) && words.test(word));
}

function advice(word: string): string {
  return `'${word}': use ${replaced[word]}`;
}
