import { floatRepr, typeError, valueError } from "@aenv/benchmark";
import { type Operator, operate, signed } from "../arithmetic.ts";
import { roundFloat, toDouble } from "../numbers.ts";
import { repr } from "../repr.ts";
import { elementsOf } from "../sequences.ts";
import type { Call, Node } from "../syntax/node.ts";
import { typeName } from "../values/types.ts";
import { isNumber, PyFloat, PyTuple, type PyValue } from "../values/values.ts";
import { parseSum } from "./parse.ts";

const ALPHABET = "0123456789+-*/(). ";

/** The tool `calculate`: Python's `eval` of digits and operators, rounded to two decimals. */
export function calculate(expression: PyValue): string {
  const text = checked(expression);
  const value = evaluate(parseSum(text));
  if (!isNumber(value)) throw typeError(`float() argument must be a string or a real number, not '${typeName(value)}'`);
  return floatRepr(roundFloat(toDouble(value), 2));
}

function checked(expression: PyValue): string {
  for (const element of elementsOf(expression)) {
    if (typeof element !== "string") throw typeError(`'in <string>' requires string as left operand, not ${typeName(element)}`);
    if (!ALPHABET.includes(element)) throw valueError("Invalid characters in expression");
  }
  if (typeof expression !== "string") throw typeError("eval() arg 1 must be a string, bytes or code object");
  return expression;
}

function evaluate(sum: Node): PyValue {
  switch (sum.kind) {
    case "constant":
      return sum.value;
    case "tuple":
      return new PyTuple(sum.items.map(evaluate));
    case "sign":
      return signed(sum.sign, evaluate(sum.operand));
    case "binary": {
      // A loop instead of recursion: the tree of a long sum is as deep as the sum is long.
      const rest: (Node & { readonly kind: "binary" })[] = [];
      let leftmost: Node = sum;
      for (; leftmost.kind === "binary"; leftmost = leftmost.left) rest.push(leftmost);
      let value = evaluate(leftmost);
      for (const { operator, right } of rest.reverse()) value = operate(value, operator as Operator, evaluate(right));
      return value;
    }
    case "call":
      return call(sum);
    default:
      throw new Error(`digits and operators cannot be parsed as ${sum.kind}`);
  }
}

/** No value of this grammar is callable, so a call always fails; this decides which error comes first. */
function call({ of, positional: [argument], keywords: [mapping] }: Call): never {
  const target = evaluate(of);
  if (mapping !== undefined) {
    throw typeError(`${shown(target)} argument after ** must be a mapping, not ${typeName(evaluate(mapping.value))}`);
  }
  if (argument?.kind === "star") {
    const given = evaluate(argument.of);
    if (!(given instanceof PyTuple)) throw typeError(`${shown(target)} argument after * must be an iterable, not ${typeName(given)}`);
  } else if (argument !== undefined) evaluate(argument);
  throw typeError(`'${typeName(target)}' object is not callable`);
}

function shown(value: PyValue): string {
  return value instanceof PyFloat ? floatRepr(value.value) : repr(value);
}
