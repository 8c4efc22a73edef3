import { latin1Bytes, TAR_ATTRIBUTE, TAR_BLOCK, TAR_TYPES, type TarEntry, tarBlock, tarPadding } from "./tar-format.ts";

/** Two blocks of zeros. */
export const TAR_END = new Uint8Array(2 * TAR_BLOCK);

/**
 * The header of an entry: a ustar header, after a pax header for what has no place in it and for other records. The content and its padding
 * follow.
 */
export function tarEntryHeader(entry: TarEntry, others: Readonly<Record<string, string>> = {}): Uint8Array {
  const records = latin1Bytes(paxRecords(entry, others));
  const header = ustarHeader(entry, TAR_TYPES[entry.type]);
  if (records.length === 0) return header;
  const extended: TarEntry = { ...entry, path: "pax", linkPath: "", size: records.length, mode: 0o644 };
  const all = new Uint8Array(2 * TAR_BLOCK + records.length + tarPadding(records.length));
  all.set(ustarHeader(extended, "x"));
  all.set(records, TAR_BLOCK);
  all.set(header, all.length - TAR_BLOCK);
  return all;
}

/** The zeros after a content of this size. */
export function tarPaddingBytes(size: number): Uint8Array {
  return new Uint8Array(tarPadding(size));
}

function paxRecords(entry: TarEntry, others: Readonly<Record<string, string>>): string {
  const records = Object.entries(others);
  if (entry.path.length > 100) records.push(["path", entry.path]);
  if (entry.linkPath.length > 100) records.push(["linkpath", entry.linkPath]);
  for (const [key, digits] of LIMITED) if (entry[key] >= 8 ** digits) records.push([key, String(entry[key])]);
  for (const [name, value] of Object.entries(entry.attributes)) records.push([TAR_ATTRIBUTE + name, value]);
  return records.map(paxRecord).join("");
}

const LIMITED = [
  ["size", 11],
  ["uid", 7],
  ["gid", 7],
] as const;

/** The length of a record counts its own digits. */
function paxRecord([key, value]: readonly [string, string]): string {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return `${length}${rest}`;
}

function ustarHeader({ path, mode, uid, gid, size, mtimeSeconds, linkPath, major, minor }: TarEntry, letter: string): Uint8Array {
  const limited = (value: number, digits: number): number => (value >= 8 ** digits ? 0 : Math.max(0, value));
  return tarBlock({
    name: path,
    mode,
    uid: limited(uid, 7),
    gid: limited(gid, 7),
    size: limited(size, 11),
    mtime: limited(mtimeSeconds, 11),
    type: letter,
    link: linkPath,
    major,
    minor,
  });
}
