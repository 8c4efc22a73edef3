import type { PyValue } from "../values/values.ts";

/** The parts of Python's syntax tree that values need; other valid expressions are `other`. */
export type Node =
  | { readonly kind: "constant"; readonly value: PyValue }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "sign"; readonly sign: "+" | "-"; readonly operand: Node }
  | { readonly kind: "list" | "tuple"; readonly items: readonly Node[] }
  | { readonly kind: "dict"; readonly entries: readonly (readonly [Node | null, Node])[] }
  | { readonly kind: "attribute"; readonly of: Node; readonly name: string }
  | { readonly kind: "call"; readonly callee: Node; readonly positional: readonly Node[]; readonly keywords: readonly Keyword[] }
  | { readonly kind: "other"; readonly what: string };

/** The name is null for `**value`. */
export interface Keyword {
  readonly name: string | null;
  readonly value: Node;
}
