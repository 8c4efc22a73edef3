import { strip } from "@aenv/benchmark";
import { InvalidValue } from "../../fields/field.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: no file of Windows has them in its name.
const NOT_PORTABLE = /[<>:"/\\|?*\x00-\x1f\x7f]/;
const DEVICE = /^(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[1-9¹²³])$/i;
const MAX_BYTES = 255;

/** The name of a step is one folder on every system. */
export function parseStepName(name: string, at = ""): string {
  const stem = (name.split(".")[0] ?? "").replace(/ +$/, "");
  const isBad = strip(name) === "" || /[. ]$/.test(name) || NOT_PORTABLE.test(name) || DEVICE.test(stem);
  if (isBad) throw new InvalidValue(at, `'${name}' is not a name for a folder`);
  if (Buffer.byteLength(name) > MAX_BYTES) throw new InvalidValue(at, `the name of a step has at most ${MAX_BYTES} bytes`);
  return name;
}

/** Some file systems have only one folder for two such names. */
export function stepNameKey(name: string): string {
  return name.normalize("NFC").toUpperCase().toLowerCase();
}
