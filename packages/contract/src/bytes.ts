import { PlatformError } from "./errors.ts";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;
const DECIMAL = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** Bytes of a size such as `10 GiB`, `512MiB`, `2 GB` or a bare number of bytes. */
export function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  const unit = (match?.[2] || "B").toLowerCase();
  const binary = UNITS.findIndex((name) => name.toLowerCase() === unit);
  const decimal = DECIMAL.findIndex((name) => name.toLowerCase() === unit);
  const size = binary >= 0 ? 1024 ** binary : decimal >= 0 ? 1000 ** decimal : Number.NaN;
  const bytes = Math.round(Number(match?.[1]) * size);
  if (Number.isSafeInteger(bytes)) return bytes;
  throw new PlatformError("request.invalid", `invalid size '${text}': write a number and a unit, such as 10 GiB, 512 MiB or 2 GB`);
}

/** The shortest exact text: `10737418240` is `10 GiB`, `1500` is `1500 B`. */
export function formatBytes(bytes: number): string {
  let at = 0;
  let count = bytes;
  while (count !== 0 && count % 1024 === 0 && at < UNITS.length - 1) {
    count /= 1024;
    at++;
  }
  return `${count} ${UNITS[at]}`;
}
