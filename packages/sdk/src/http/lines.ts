import { ReadLimitExceeded } from "@aenv/contract";
import { MAX_ANSWER_BYTES } from "./http.ts";

/** The lines of a text while it arrives. A line of more characters than the limit throws a ReadLimitExceeded. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, maxLength = MAX_ANSWER_BYTES): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
    if (rest.length > maxLength) throw new ReadLimitExceeded("bytes", maxLength);
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
