import type { Call, Node } from "../../python/syntax/node.ts";
import { PyFloat, type PyValue } from "../../python/values/values.ts";
import { ReaderError } from "../error.ts";
import { cleanIndent } from "./docstring.ts";
import { type Project, pathOf, type Scope } from "./project.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Whether an f-string is returned with its placeholders, or is an error. */
export type FormattedStrings = "keep" | "refuse";

/** The value of a constant expression: literals, constants, enum members, concatenated and stripped strings. */
export function evaluate(expression: Node, scope: Scope, project: Project, formattedStrings: FormattedStrings = "refuse"): Json {
  const inner = (one: Node): Json => evaluate(one, scope, project, formattedStrings);
  switch (expression.kind) {
    case "constant": {
      const value = jsonOf(expression.value);
      if (value !== undefined) return value;
      break;
    }
    case "formatted":
      if (formattedStrings === "refuse") break;
      return expression.value;
    case "list":
    case "tuple":
    case "set":
      return expression.items.map(inner);
    case "dict": {
      const entries = expression.entries.flatMap(([key, value]) => (key === null ? [] : [[String(inner(key)), inner(value)] as const]));
      if (entries.length < expression.entries.length) break;
      return Object.fromEntries(entries);
    }
    case "sign": {
      const value = inner(expression.operand);
      if (typeof value === "number") return expression.sign === "-" ? -value : value;
      break;
    }
    case "binary": {
      const [left, right] = [inner(expression.left), inner(expression.right)];
      if (expression.operator === "+" && typeof left === "string" && typeof right === "string") return left + right;
      if (typeof left === "number" && typeof right === "number") {
        if (expression.operator === "+") return left + right;
        if (expression.operator === "-") return left - right;
        if (expression.operator === "*") return left * right;
      }
      break;
    }
    case "call": {
      const text = textOfCall(expression, inner);
      if (text !== null) return text;
      break;
    }
    case "name":
    case "attribute": {
      const value = namedValue(expression, scope, project, formattedStrings);
      if (value !== undefined) return value;
    }
  }
  throw new ReaderError("this value is computed at run time and cannot be read", expression.line, scope.file);
}

/** Undefined for literals that JSON does not have, such as bytes. */
function jsonOf(value: PyValue): Json | undefined {
  if (value instanceof PyFloat) return value.value;
  if (typeof value === "bigint") return Number(value);
  return value === null || typeof value !== "object" ? value : undefined;
}

const METHODS = new Map<string, (text: string) => string>(
  Object.entries({
    strip: (text) => text.trim(),
    lstrip: (text) => text.trimStart(),
    rstrip: (text) => text.trimEnd(),
  }),
);

function textOfCall(call: Call, inner: (one: Node) => Json): string | null {
  const [argument] = call.positional;
  const path = pathOf(call.of);
  if (argument && (path?.at(-1) === "dedent" || path?.at(-1) === "cleandoc")) {
    const text = inner(argument);
    if (typeof text !== "string") return null;
    return path.at(-1) === "cleandoc" ? cleanIndent(text) : dedent(text);
  }
  const method = call.of.kind === "attribute" && !argument ? METHODS.get(call.of.name) : undefined;
  if (!method || call.of.kind !== "attribute") return null;
  const text = inner(call.of.of);
  return typeof text === "string" ? method(text) : null;
}

function dedent(text: string): string {
  const lines = text.split("\n").map((line) => (line.trim() === "" ? "" : line));
  const margins = lines.filter((line) => line !== "").map((line) => /^[ \t]*/.exec(line)?.[0] ?? "");
  let margin = margins[0] ?? "";
  for (const other of margins) while (!other.startsWith(margin)) margin = margin.slice(0, -1);
  return lines.map((line) => line.slice(margin.length)).join("\n");
}

function namedValue(expression: Node, scope: Scope, project: Project, formattedStrings: FormattedStrings): Json | undefined {
  if (!pathOf(expression)) return undefined;
  const meaning = project.resolve(expression, scope);
  if (meaning.kind === "alias") return project.follow(meaning, () => evaluate(meaning.value, meaning.scope, project, formattedStrings));
  if (expression.kind !== "attribute") return undefined;
  if (expression.name === "value" && expression.of.kind === "attribute") return namedValue(expression.of, scope, project, formattedStrings);
  const owner = project.resolve(expression.of, scope);
  if (owner.kind !== "class") return undefined;
  const member = owner.class.fields.find((field) => field.name === expression.name)?.value;
  return member ? evaluate(member, owner.scope, project, formattedStrings) : undefined;
}
