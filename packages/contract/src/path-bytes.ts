const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A path as a text. The name of a file may be any bytes: one that is not UTF-8 becomes the character U+DC00 + byte, as in Python. */
export function decodePath(bytes: Uint8Array): string {
  const whole = decoded(bytes);
  if (whole !== null) return whole;
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] ?? 0;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const one = decoded(bytes.subarray(at, at + length));
    text += one ?? String.fromCharCode(0xdc00 + lead);
    at += one === null ? 1 : length;
  }
  return text;
}

/** The bytes of such a text. */
export function encodePath(path: string): Uint8Array {
  // Only alone: the second half of a character beyond U+FFFF is none of these.
  const parts = path.split(/([\udc80-\udcff])/u);
  const bytes = parts.flatMap((part, at) => (at % 2 === 1 ? [part.charCodeAt(0) - 0xdc00] : [...encoder.encode(part)]));
  return Uint8Array.from(bytes);
}

function decoded(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}
