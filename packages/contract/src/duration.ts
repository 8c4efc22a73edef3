import { PlatformError } from "./errors.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3, // U+00B5, the micro sign
  μs: 1e-3, // U+03BC, the Greek letter that looks the same
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)/y;

/** The longest duration: a date this far from now is still a valid Date. */
const LONGEST_DAYS = 36_500;

/** Milliseconds of a duration such as `30m`, `1h30m`, `1.5h`, `90s` or `1d`. A bare number is refused, except `0`, and so is more than 100 years. */
export function parseDuration(text: string): number {
  const sign = text.startsWith("-") ? -1 : 1;
  const body = text.replace(/^[+-]/, "");
  if (body === "0") return 0;
  let total = 0;
  let at = 0;
  while (at < body.length) {
    PART.lastIndex = at;
    const match = PART.exec(body);
    if (match === null) throw invalid(text);
    total += Number(match[1]) * (UNIT_MS[match[2] as string] as number);
    at = PART.lastIndex;
  }
  if (at === 0) throw invalid(text);
  if (total > LONGEST_DAYS * (UNIT_MS.d as number)) throw tooLong(text);
  return sign * total;
}

/** The shortest exact text for whole milliseconds: `90000` is `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (ms < 0) return `-${formatDuration(-ms)}`;
  let rest = Math.round(ms);
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms"]) {
    const size = UNIT_MS[unit] as number;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}

function tooLong(text: string): PlatformError {
  return new PlatformError("request.invalid", `invalid duration '${shown(text)}': it is longer than ${LONGEST_DAYS}d, which is 100 years`);
}

/** A caller's text, shortened for a message. */
function shown(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

function invalid(text: string): PlatformError {
  return new PlatformError(
    "request.invalid",
    `invalid duration '${shown(text)}': write a number and a unit, such as 30m, 1h30m, 90s or 1d`,
  );
}
