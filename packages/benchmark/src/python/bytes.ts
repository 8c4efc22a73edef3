import { PyError } from "./errors.ts";

// `ignoreBOM` keeps a byte order mark in the text, as Python does.
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

/** Raises on bytes that are not UTF-8. */
export function decodeStrict(bytes: Uint8Array, what: string): string {
  try {
    return strict.decode(bytes);
  } catch (error) {
    throw new PyError("UnicodeDecodeError", `${what} is not valid UTF-8`, { cause: error });
  }
}

/** Bytes that are not UTF-8 become U+FFFD. */
export function decodeLenient(bytes: Uint8Array): string {
  return lenient.decode(bytes);
}
