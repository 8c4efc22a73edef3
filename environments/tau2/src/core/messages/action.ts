import { compareText, PyError, SPACES, strip, valueError, WORD } from "@aenv/benchmark";
import { signed } from "../../python/arithmetic.ts";
import { assertHashable, equals } from "../../python/equality.ts";
import { readJsonOr } from "../../python/json/reader.ts";
import { repr, str } from "../../python/repr.ts";
import { PythonSyntaxError } from "../../python/syntax/error.ts";
import { parseCall } from "../../python/syntax/expression.ts";
import type { Node } from "../../python/syntax/node.ts";
import { Dict, isNumber, PyTuple, type PyValue } from "../../python/values/values.ts";

export type Requestor = "user" | "assistant";

export interface ActionCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Dict;
  readonly requestor: Requestor;
}

/** A parsed line of text of an agent: a tool call, or a message. */
export type Action = { readonly call: ActionCall } | { readonly text: string };

const FUNCTIONAL = new RegExp(`^([${WORD}]+)[${SPACES}]*\\(([^\\n]*)\\)$`, "u");

/** Parses an action: a tool call as JSON, else a call in Python syntax, else text. */
export function parseAction(action: string, requestor: Requestor = "assistant"): Action {
  const stripped = strip(action);
  if (stripped === "") throw valueError("Action cannot be empty");
  const call = jsonCall(stripped) ?? functionalCall(stripped, requestor);
  return call === null ? { text: action } : { call };
}

/** A call in Python syntax, as `parseAction` reads it, with the arguments sorted by name. */
export function toFunctionalFormat(name: string, args: Dict): string {
  if (name === "") throw valueError("ToolCall must have a name");
  const shown = [...args].map(([key, value]) => [str(key), value] as const).sort(([a], [b]) => compareText(a, b));
  return `${name}(${shown.map(([key, value]) => `${key}=${functionalValue(value)}`).join(", ")})`;
}

function functionalValue(value: PyValue): string {
  return typeof value === "string" ? `'${value.replaceAll("'", "\\'")}'` : repr(value);
}

/** A call in JSON may name its own requestor. */
function jsonCall(text: string): ActionCall | null {
  const value = readJsonOr(text, null);
  if (!(value instanceof Dict) || !isWellFormed(value)) return null;
  const name = value.get("name");
  const args = value.get("arguments");
  const id = value.has("id") ? value.get("id") : "";
  const requestor = value.has("requestor") ? value.get("requestor") : "assistant";
  if (typeof name !== "string" || !(args instanceof Dict) || typeof id !== "string") return null;
  return requestor === "user" || requestor === "assistant" ? { id, name, arguments: args, requestor } : null;
}

function isWellFormed(value: PyValue): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isWellFormed);
  return value instanceof Dict ? [...value].every(([key, item]) => isWellFormed(key) && isWellFormed(item)) : true;
}

function functionalCall(text: string, requestor: Requestor): ActionCall | null {
  const [, name, inside] = FUNCTIONAL.exec(text) ?? [];
  if (name === undefined || inside === undefined) return null;
  const args = new Dict();
  try {
    const body = strip(inside);
    // The name of the tool may not be a Python name (`1f`, `class`), so it is replaced for parsing.
    if (body !== "") for (const keyword of parseCall(`call(${body})`).keywords) args.set(keyword.name, literalValue(keyword.value));
  } catch (error) {
    if (error instanceof PythonSyntaxError || error instanceof PyError) return null;
    throw error;
  }
  return { id: "", name, arguments: args, requestor };
}

/** The value of a literal; a bare name is its own text, as in the reference. */
export function literalValue(node: Node): PyValue {
  switch (node.kind) {
    case "constant":
      return node.value;
    case "name":
      return node.name;
    case "list":
      return node.items.map(literalValue);
    case "tuple":
      return new PyTuple(node.items.map(literalValue));
    case "dict":
      return dictOf(node.entries);
    case "sign": {
      const operand = node.operand.kind === "name" ? null : literalValue(node.operand);
      if (operand === null || !isNumber(operand)) throw new PythonSyntaxError(`${node.sign} needs a number`);
      return signed(node.sign, operand);
    }
    default:
      throw new PythonSyntaxError(`not a literal: ${node.kind}`);
  }
}

function dictOf(entries: readonly (readonly [Node | null, Node])[]): Dict {
  const dict = new Dict();
  for (const [keyNode, valueNode] of entries) {
    if (keyNode === null) throw new PythonSyntaxError("not a literal: ** in a dict");
    const key = literalValue(keyNode);
    assertHashable(key);
    // Equal keys are one key, and the first one is kept: {1: 2, True: 3} is {1: 3}.
    const known = typeof key === "string" ? key : [...dict.keys()].find((candidate) => equals(candidate, key));
    dict.set(known === undefined ? key : known, literalValue(valueNode));
  }
  return dict;
}
