import { StringDecoder } from "node:string_decoder";

/** The lines of a stream, without their ends. The last one may lack its end. */
export async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const data of stream) {
    const lines = (rest + decoder.write(Buffer.from(data.buffer, data.byteOffset, data.byteLength))).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  rest += decoder.end();
  if (rest !== "") yield rest;
}
