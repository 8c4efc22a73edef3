/** The `data` of each event in a stream of server-sent events. */
export async function* serverSentEvents(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let held = "";
  let endsInCarriageReturn = false;
  let data: string[] = [];
  for await (const chunk of stream) {
    const text = decoder.decode(chunk, { stream: true });
    if (text === "") continue;
    held += text;
    // A line of many chunks is searched once, not again with each chunk.
    const mayEndLine = endsInCarriageReturn || /[\r\n]/.test(text);
    endsInCarriageReturn = text.endsWith("\r");
    if (!mayEndLine) continue;
    const lines = held.split(/\r\n|\n|\r(?!$)/);
    held = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line === "" && data.length > 0) {
        yield data.join("\n");
        data = [];
      }
    }
  }
  if (data.length > 0) yield data.join("\n");
}
