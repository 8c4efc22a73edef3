export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** The part of a file that a `Range` header asks for; all of it without one, or with one that HTTP lets a server ignore. Null: there is no such part. */
export function readRange(header: string | undefined, size: number): ByteRange | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? "") ?? [];
  if (first === "" && last === "") return { offset: 0, length: size };
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? null : { offset: size - length, length };
  }
  const offset = Number(first);
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return offset >= size || end < offset ? null : { offset, length: end - offset + 1 };
}
