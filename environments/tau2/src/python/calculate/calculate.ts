import { floatRepr, typeError, valueError } from "@aenv/benchmark";
import { operate, signed } from "../arithmetic.ts";
import { roundFloat, toDouble } from "../numbers.ts";
import { repr } from "../repr.ts";
import { elementsOf } from "../sequences.ts";
import { typeName } from "../values/types.ts";
import { isNumber, PyFloat, PyTuple, type PyValue } from "../values/values.ts";
import { type Expression, parseExpression } from "./parse.ts";

const ALPHABET = "0123456789+-*/(). ";

/** The tool `calculate`: Python's `eval` of digits and operators, rounded to two decimals. */
export function calculate(expression: PyValue): string {
  const text = checked(expression);
  const value = evaluate(parseExpression(text));
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

function evaluate(expression: Expression): PyValue {
  switch (expression.kind) {
    case "value":
      return expression.value;
    case "sign":
      return signed(expression.sign, evaluate(expression.operand));
    case "binary": {
      // A loop instead of recursion: the tree of a long sum is as deep as the sum is long.
      const rest: Expression[] = [];
      let leftmost: Expression = expression;
      while (leftmost.kind === "binary") {
        rest.push(leftmost);
        leftmost = leftmost.left;
      }
      let value = evaluate(leftmost);
      for (const step of rest.reverse()) if (step.kind === "binary") value = operate(value, step.operator, evaluate(step.right));
      return value;
    }
    case "call":
      return call(expression);
  }
}

/** No value of this grammar is callable, so a call always fails; this decides which error comes first. */
function call({ callee, star, argument }: Extract<Expression, { kind: "call" }>): never {
  const target = evaluate(callee);
  const given = argument === null ? null : evaluate(argument);
  if (star === "*" && !(given instanceof PyTuple)) {
    throw typeError(`${shown(target)} argument after * must be an iterable, not ${typeName(given)}`);
  }
  if (star === "**") throw typeError(`${shown(target)} argument after ** must be a mapping, not ${typeName(given)}`);
  throw typeError(`'${typeName(target)}' object is not callable`);
}

function shown(value: PyValue): string {
  return value instanceof PyFloat ? floatRepr(value.value) : repr(value);
}
