import type { PyValue } from "../values/values.ts";

/** The parts of Python's syntax tree that values, types and sums need. Other valid expressions are `code`. */
export type Node = { readonly line: number } & (
  | { readonly kind: "constant"; readonly value: PyValue }
  /** An f-string with its replacement fields as they are written. */
  | { readonly kind: "formatted"; readonly value: string }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "sign"; readonly sign: "+" | "-"; readonly operand: Node }
  | { readonly kind: "binary"; readonly operator: string; readonly left: Node; readonly right: Node }
  | { readonly kind: "list" | "tuple" | "set"; readonly items: readonly Node[] }
  | { readonly kind: "dict"; readonly entries: readonly (readonly [Node | null, Node])[] }
  | { readonly kind: "attribute"; readonly of: Node; readonly name: string }
  | { readonly kind: "subscript"; readonly of: Node; readonly items: readonly Node[] }
  | { readonly kind: "call"; readonly of: Node; readonly positional: readonly Node[]; readonly keywords: readonly Keyword[] }
  | { readonly kind: "star"; readonly of: Node }
  | { readonly kind: "code"; readonly what: string }
);

export type Call = Node & { readonly kind: "call" };

/** The name is null for `**value`. */
export interface Keyword {
  readonly name: string | null;
  readonly value: Node;
}

/** The value of a keyword argument. */
export function findKeyword(call: Call, name: string): Node | null {
  return call.keywords.find((keyword) => keyword.name === name)?.value ?? null;
}
