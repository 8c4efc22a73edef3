import { InvalidValue } from "../fields/field.ts";

const SECONDS: Readonly<Record<string, number>> = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** Seconds of a duration such as `1m30s`. */
export function durationOf(value: unknown, at: string): number {
  const parts = [...String(value).matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== String(value))
    throw new InvalidValue(at, `'${value}' is not a duration such as 30s`);
  return parts.reduce((sum, [, number, unit = ""]) => sum + Number(number) * (SECONDS[unit] ?? 0), 0);
}

const MEBIBYTES: Readonly<Record<string, number>> = { "": 1 / 1024 ** 2, b: 1 / 1024 ** 2, k: 1 / 1024, m: 1, g: 1024 };

/** Mebibytes of an amount such as `512m`, `1.5GB` or `2GiB`, which are all powers of two, as in Docker. */
export function mebibytesOf(value: unknown, at: string): number {
  const [, number, bytes, unit = bytes ?? ""] = /^(\d+(?:\.\d+)?)\s*(?:(b)|(k|m|g)(?:i?b)?)?$/i.exec(String(value)) ?? [];
  if (number === undefined) throw new InvalidValue(at, `'${value}' is not an amount of memory such as 512m`);
  return Math.max(1, Math.ceil(Number(number) * (MEBIBYTES[unit.toLowerCase()] ?? 1)));
}

/** The words of a command as a shell splits them, without running one. */
export function wordsOf(command: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (const [, space, single, double, escaped, plain] of command.matchAll(/(\s+)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)/gs)) {
    if (space !== undefined) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    word = (word ?? "") + (single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? plain ?? "");
  }
  return word === null ? words : [...words, word];
}
