import { crc32 } from "node:zlib";

const FIELD = ',"crc32":"';
/** `,"crc32":"` + 8 digits + `"}` */
const TAIL_LENGTH = FIELD.length + 10;

/** One record as a line of JSON whose last field is the checksum of all that comes before it. */
export function writeLine(record: Readonly<Record<string, unknown>>): string {
  const json = JSON.stringify(record);
  const body = json.slice(0, -1);
  return `${body}${FIELD}${checksum(body)}"}\n`;
}

export type ReadLine =
  | { readonly kind: "record"; readonly record: Record<string, unknown> }
  | { readonly kind: "damaged"; readonly reason: string };

/** Reads a line without its line break. What was cut off or changed is damaged. */
export function readLine(line: string): ReadLine {
  const body = line.slice(0, -TAIL_LENGTH);
  const tail = line.slice(-TAIL_LENGTH);
  if (!tail.startsWith(FIELD) || !tail.endsWith('"}')) return { kind: "damaged", reason: "it does not end with a checksum" };
  if (tail.slice(FIELD.length, -2) !== checksum(body)) return { kind: "damaged", reason: "its checksum does not match" };
  const { crc32: _, ...record } = JSON.parse(line);
  return { kind: "record", record };
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
