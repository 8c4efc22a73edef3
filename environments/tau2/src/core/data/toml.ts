import { readJson } from "../../python/json/reader.ts";
import { Dict, PyFloat, type PyValue, toInt } from "../../python/values/values.ts";

/**
 * Reads the part of TOML that the benchmark's databases use: tables, arrays of tables, basic strings, ints, floats, booleans
 * and arrays. Distinguishes ints from floats, which most TOML readers do not. Throws for anything else, with the line.
 */
export function readToml(source: string): Dict {
  const root = new Dict();
  let current = root;
  const lines = source.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const line = withoutComment(lines[i] ?? "").trim();
    if (line === "") continue;
    const isArray = /^\[\[.*\]\]$/.test(line);
    if (isArray || /^\[[^=]*\]$/.test(line)) {
      current = openTable(root, keysOf(isArray ? line.slice(2, -2) : line.slice(1, -1), i), isArray, i);
      continue;
    }
    const [, key, start] = /^((?:[\w-]+|"[^"]*")(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)\s*=\s*(.+)$/.exec(line) ?? [];
    if (key === undefined || start === undefined) throw refused(i, line);
    let value = start;
    // An array may span several lines.
    const first = i;
    while (value.startsWith("[") && !isClosed(value)) {
      const next = lines[++i];
      if (next === undefined) throw refused(first, line);
      value += ` ${withoutComment(next).trim()}`;
    }
    const names = keysOf(key, first);
    const last = names.pop() ?? "";
    const target = openTable(current, names, false, first);
    if (target.has(last)) throw refused(first, line);
    target.set(last, tomlValue(value, first));
  }
  return root;
}

function openTable(from: Dict, names: readonly string[], isArray: boolean, line: number): Dict {
  let table = from;
  for (const [i, name] of names.entries()) {
    const existing = table.get(name);
    if (isArray && i === names.length - 1) {
      const list = existing ?? [];
      if (!Array.isArray(list)) throw refused(line, name);
      const added = new Dict();
      table.set(name, [...list, added]);
      return added;
    }
    const next = Array.isArray(existing) ? existing.at(-1) : existing;
    if (next !== undefined && !(next instanceof Dict)) throw refused(line, name);
    const opened = next ?? new Dict();
    if (next === undefined) table.set(name, opened);
    table = opened;
  }
  return table;
}

function keysOf(text: string, line: number): string[] {
  return text.split(".").map((part) => {
    const key = part.trim();
    if (/^[\w-]+$/.test(key)) return key;
    if (/^"[^"\\]*"$/.test(key)) return key.slice(1, -1);
    throw refused(line, text);
  });
}

const INT = /^[+-]?(?:0|[1-9](?:_?\d)*)$/;
const FLOAT = /^[+-]?(?:(?:0|[1-9](?:_?\d)*)(?:\.\d(?:_?\d)*)?(?:[eE][+-]?\d(?:_?\d)*)?|inf|nan)$/;

function tomlValue(text: string, line: number): PyValue {
  if (text === "true" || text === "false") return text === "true";
  const plain = text.replaceAll("_", "");
  if (INT.test(text)) return toInt(BigInt(plain.replace(/^\+/, "")));
  if (FLOAT.test(text)) return new PyFloat(Number(plain.replace("inf", "Infinity").replace("nan", "NaN")));
  if (/^"(?:[^"\\]|\\.)*"$/.test(text)) return readJson(text);
  if (/^'[^']*'$/.test(text)) return text.slice(1, -1);
  if (text.startsWith("[") && text.endsWith("]")) return itemsOf(text.slice(1, -1)).map((item) => tomlValue(item, line));
  throw refused(line, text);
}

/** Splits at commas outside strings and inner arrays. */
function itemsOf(text: string): string[] {
  const items = text.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|[^,"'[\]])+/g) ?? [];
  return items.map((item) => item.trim()).filter((item) => item !== "");
}

function isClosed(text: string): boolean {
  const bare = text.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "");
  return bare.split("[").length === bare.split("]").length;
}

function withoutComment(line: string): string {
  return /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^#"'])*/.exec(line)?.[0] ?? line;
}

function refused(line: number, text: string): Error {
  return new Error(`line ${line + 1} of a TOML file is not supported: ${text}`);
}
