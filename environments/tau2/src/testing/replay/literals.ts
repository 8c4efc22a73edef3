import { literalValue } from "../../core/messages/action.ts";
import { parsePython } from "../../python/syntax/expression.ts";
import type { Node } from "../../python/syntax/node.ts";
import { PyDate, PyDateTime } from "../../python/values/datetime.ts";
import { Dict, PyTuple, type PyValue } from "../../python/values/values.ts";

/** The value of a Python `repr`, including dates. */
export function readRepr(source: string): PyValue {
  return literalOf(parsePython(source));
}

function literalOf(node: Node): PyValue {
  switch (node.kind) {
    case "list":
      return node.items.map(literalOf);
    case "tuple":
      return new PyTuple(node.items.map(literalOf));
    case "dict":
      return new Dict(node.entries.map(([key, value]) => [key === null ? null : literalOf(key), literalOf(value)]));
    case "call": {
      const [year = 0, month = 0, day = 0, hour, minute, second, microsecond] = node.positional.map((item) => Number(literalOf(item)));
      const date = new PyDate(year, month, day);
      return node.of.kind === "attribute" && node.of.name === "date" ? date : new PyDateTime(date, hour, minute, second, microsecond);
    }
    default:
      return literalValue(node);
  }
}

/** A double in C's hexadecimal notation: `0x1.8p-2`. */
export function readHexFloat(text: string): number {
  const [, sign, whole = "0", fraction = "", exponent = "0"] = /^(-?)0x(\d)\.?([\da-f]*)p([+-]\d+)$/.exec(text) ?? [];
  if (sign === undefined) {
    const named: Readonly<Record<string, number>> = { inf: Number.POSITIVE_INFINITY, "-inf": Number.NEGATIVE_INFINITY, nan: Number.NaN };
    return named[text] ?? Number.NaN;
  }
  const mantissa = Number.parseInt(whole + fraction, 16);
  // In two steps, because 2^power alone underflows for the smallest doubles.
  const power = Number(exponent) - 4 * fraction.length;
  const half = Math.trunc(power / 2);
  const value = mantissa * 2 ** half * 2 ** (power - half);
  return sign === "-" ? -value : value;
}
