import { gunzipSync } from "node:zlib";

export interface ArchivedFile {
  path: string;
  content: Buffer;
}

const BLOCK = 512;
const MAX_UNPACKED_BYTES = 2 ** 30;

/** The regular files of a .tar.gz archive (ustar, with the long names of pax and GNU). */
export function* readArchive(bytes: Buffer, from = "the archive"): Generator<ArchivedFile> {
  const tar = unzip(bytes, from);
  let longName: string | null = null;
  for (let at = 0; at + BLOCK <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    if (header[0] === 0) return;
    const size = Number.parseInt(textAt(header, 124, 12).trim() || "0", 8);
    if (textAt(header, 257, 5) !== "ustar" || !Number.isSafeInteger(size))
      throw new Error(`${from} is not a supported tar archive: bad header at byte ${at}`);
    const content = tar.subarray(at + BLOCK, at + BLOCK + size);
    if (content.length < size) throw new Error(`${from} is truncated; download it again`);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    const type = textAt(header, 156, 1);
    if (type === "x") longName = paxPath(content);
    else if (type === "L") longName = textAt(content, 0, size);
    else {
      const prefix = textAt(header, 345, 155);
      const path = longName ?? (prefix ? `${prefix}/` : "") + textAt(header, 0, 100);
      if (path.split("/").includes("..")) throw new Error(`${from} contains ${path}, which leads out of it; nothing was read`);
      if (type === "0" || type === "") yield { path: path.replace(/^\.\//, ""), content };
      if (type !== "g") longName = null;
    }
  }
}

function unzip(bytes: Buffer, from: string): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (cause) {
    throw new Error(`${from} is not a .tar.gz archive: ${(cause as Error).message}`, { cause });
  }
}

function textAt(bytes: Buffer, start: number, length: number): string {
  const field = bytes.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? field.length : end);
}

/** Records of `<length> <key>=<value>\n`, lengths in bytes. */
function paxPath(content: Buffer): string | null {
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(" ", at);
    const length = Number.parseInt(content.toString("utf8", at, space), 10);
    if (space < 0 || !(length > 0)) return null;
    const record = content.toString("utf8", space + 1, at + length - 1);
    if (record.startsWith("path=")) return record.slice("path=".length);
    at += length;
  }
  return null;
}
