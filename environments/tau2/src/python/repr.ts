import { floatRepr } from "@aenv/benchmark";
import { PyDate, PyDateTime } from "./values/datetime.ts";
import { PyEnum } from "./values/enums.ts";
import { fieldsOf, MODEL, PyObject } from "./values/objects.ts";
import { Dict, PyFloat, PyOpaque, PyTuple, type PyValue } from "./values/values.ts";

/** Python's `str()`, which is also what f-strings print. */
export function str(value: PyValue): string {
  if (typeof value === "string") return value;
  if (value instanceof PyEnum) return `${value.type}.${value.name}`;
  if (value instanceof PyDate) return value.isoformat();
  if (value instanceof PyDateTime) return value.isoformat(" ");
  if (value instanceof PyObject) return reprFields(value).join(" ");
  return repr(value);
}

/** Python's `repr()`. */
export function repr(value: PyValue): string {
  if (value === null) return "None";
  switch (typeof value) {
    case "boolean":
      return value ? "True" : "False";
    case "number":
    case "bigint":
      return String(value);
    case "string":
      return reprText(value);
  }
  if (value instanceof PyFloat) return floatRepr(value.value);
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (value instanceof Dict) return `{${[...value].map(([key, item]) => `${repr(key)}: ${repr(item)}`).join(", ")}}`;
  if (value instanceof PyTuple) return `(${value.items.map(repr).join(", ")}${value.items.length === 1 ? "," : ""})`;
  if (value instanceof PyEnum) return `<${value.type}.${value.name}: ${reprText(value.value)}>`;
  if (value instanceof PyDate) return `datetime.date(${value.year}, ${value.month}, ${value.day})`;
  if (value instanceof PyDateTime) return reprDateTime(value);
  if (value instanceof PyOpaque) return value.text;
  return `${value[MODEL].name}(${reprFields(value).join(", ")})`;
}

function reprFields(value: PyObject): string[] {
  return fieldsOf(value).map(([name, field]) => `${name}=${repr(field)}`);
}

function reprDateTime({ date, hour, minute, second, microsecond, isUtc }: PyDateTime): string {
  const parts = [date.year, date.month, date.day, hour, minute];
  if (second !== 0 || microsecond !== 0) parts.push(second);
  if (microsecond !== 0) parts.push(microsecond);
  return `datetime.datetime(${parts.join(", ")}${isUtc ? ", tzinfo=TzInfo(0)" : ""})`;
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const TO_ESCAPE = /[\\\p{C}\p{Zl}\p{Zp}\p{Zs}]/gu;

function reprText(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const body = text.replace(TO_ESCAPE, (char) => (char === " " ? char : (ESCAPES[char] ?? escapeCode(char.codePointAt(0) ?? 0))));
  return `${quote}${quote === "'" ? body.replaceAll("'", "\\'") : body}${quote}`;
}

function escapeCode(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
