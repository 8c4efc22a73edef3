import { PyError } from "@aenv/benchmark";
import { repr } from "../repr.ts";
import { typeName } from "../values/types.ts";
import type { PyValue } from "../values/values.ts";

/** One validation error of an input. */
export interface Issue {
  readonly path: readonly (string | number)[];
  readonly type: string;
  readonly message: string;
  readonly input: PyValue;
}

/** The version of pydantic in the URLs of its messages, as in the reference's lock file. */
const LIBRARY_VERSION = "2.12";

export function validationError(model: string, issues: readonly Issue[]): PyError {
  const head = `${issues.length} validation error${issues.length === 1 ? "" : "s"} for ${model}`;
  return new PyError("ValidationError", [head, ...issues.map(describe)].join("\n"));
}

function describe({ path, type, message, input }: Issue): string {
  const place = path.length === 0 ? "" : `${path.map(shown).join(".")}\n`;
  return (
    `${place}  ${message} [type=${type}, input_value=${shorten(repr(input))}, input_type=${typeName(input)}]\n` +
    `    For further information visit https://errors.pydantic.dev/${LIBRARY_VERSION}/v/${type}`
  );
}

function shown(part: string | number): string {
  return typeof part === "string" && part.includes(".") ? `\`${part}\`` : String(part);
}

const LIMIT = 50;
const HEAD = 25;
const TAIL = 24;

/** Cuts by bytes, but never inside a character. */
function shorten(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= LIMIT) return text;
  let head = HEAD;
  while (isInside(bytes, head)) head--;
  let tail = bytes.length - TAIL;
  while (isInside(bytes, tail)) tail++;
  return `${bytes.toString("utf8", 0, head)}...${bytes.toString("utf8", tail)}`;
}

function isInside(bytes: Buffer, at: number): boolean {
  return ((bytes[at] ?? 0) & 0xc0) === 0x80;
}
