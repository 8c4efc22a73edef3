import { ReadLimitExceeded } from "@aenv/contract";

/** The lines of a stream of bytes that end with a line break, each with the number of bytes up to its end. */
export async function* splitLines(
  stream: AsyncIterable<Uint8Array>,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<{ readonly text: string; readonly end: number }> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  let end = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_BREAK); at >= 0; at = chunk.indexOf(LINE_BREAK, from)) {
      pieces.push(chunk.subarray(from, at));
      const line = Buffer.concat(pieces.splice(0));
      length = 0;
      end += line.length + 1;
      yield { text: line.toString("utf8"), end };
      from = at + 1;
    }
    if (from === chunk.length) continue;
    length += chunk.length - from;
    // A compressed file may unpack to a line of any length.
    if (length > maxLineBytes) throw new ReadLimitExceeded("line", maxLineBytes);
    pieces.push(chunk.subarray(from));
  }
}

const LINE_BREAK = 10;
/** Longer texts cannot be strings in Node. */
const MAX_LINE_BYTES = 2 ** 29 - 24;
