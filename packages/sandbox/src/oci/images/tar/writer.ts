import { ATTRIBUTE, BLOCK, paddingOf, type TarEntry, TYPES } from "./entry.ts";

/** Two blocks of zeros. */
export const END_OF_ARCHIVE = Buffer.alloc(2 * BLOCK);

/** The header of an entry: a ustar header, after a pax header for what has no place in it. The content and its padding follow. */
export function tarHeader(entry: TarEntry): Buffer {
  const records = paxRecords(entry);
  const header = ustarHeader(entry, TYPES[entry.type]);
  if (records.length === 0) return header;
  const extended: TarEntry = { ...entry, path: "pax", linkPath: "", size: records.length, mode: 0o644 };
  return Buffer.concat([ustarHeader(extended, "x"), records, Buffer.alloc(paddingOf(records.length)), header]);
}

export function padding(size: number): Buffer {
  return Buffer.alloc(paddingOf(size));
}

function paxRecords(entry: TarEntry): Buffer {
  const records: string[] = [];
  if (entry.path.length > 100) records.push(record("path", entry.path));
  if (entry.linkPath.length > 100) records.push(record("linkpath", entry.linkPath));
  for (const [key, digits] of [
    ["size", 11],
    ["uid", 7],
    ["gid", 7],
  ] as const)
    if (entry[key] >= 8 ** digits) records.push(record(key, String(entry[key])));
  for (const [name, value] of Object.entries(entry.attributes)) records.push(record(ATTRIBUTE + name, value));
  return Buffer.from(records.join(""), "latin1");
}

/** The length of a record counts its own digits. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return `${length}${rest}`;
}

function ustarHeader(entry: TarEntry, letter: string): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(entry.path.slice(0, 100), 0, "latin1");
  const octal = (value: number, at: number, digits: number) =>
    header.write((value >= 8 ** digits ? 0 : value).toString(8).padStart(digits, "0"), at, "latin1");
  octal(entry.mode, 100, 7);
  octal(entry.uid, 108, 7);
  octal(entry.gid, 116, 7);
  octal(entry.size, 124, 11);
  octal(Math.max(0, entry.mtimeSeconds), 136, 11);
  header.write("        ", 148, "latin1");
  header.write(letter, 156, "latin1");
  header.write(entry.linkPath.slice(0, 100), 157, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  octal(entry.major, 329, 7);
  octal(entry.minor, 337, 7);
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}
