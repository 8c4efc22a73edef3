import type { Token } from "../../python/syntax/tokens.ts";
import { ReaderError } from "../error.ts";
import { readTokens } from "./source.ts";

/** A logical line, and the indented block below it if there is one. */
export interface Line {
  number: number;
  tokens: Token[];
  block: Line[];
}

export function readLines(source: string): Line[] {
  const root: Line[] = [];
  const open: Line[][] = [root];
  let current: Token[] = [];
  for (const token of readTokens(source)) {
    const block = open.at(-1) as Line[];
    if (token.kind === "newline") {
      for (const tokens of statements(current)) block.push({ number: tokens[0]?.line ?? token.line, tokens, block: [] });
      current = [];
    } else if (token.kind === "indent") {
      const header = block.at(-1);
      if (!header || header.block.length > 0) throw new ReaderError("unexpected indent", token.line);
      open.push(header.block);
    } else if (token.kind === "dedent") open.pop();
    else current.push(token);
  }
  return root;
}

/** Splits at `;`. A suite on its header's own line (`class A: pass`) is not made a block: such bodies contain no declarations. */
function statements(tokens: Token[]): Token[][] {
  const found: Token[][] = [[]];
  for (const token of tokens) {
    if (token.kind === "operator" && token.text === ";") found.push([]);
    else found.at(-1)?.push(token);
  }
  return found.filter((statement) => statement.length > 0);
}
