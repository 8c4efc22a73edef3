import { lineAt } from "./problem.ts";

/** The allowed imports of ARCHITECTURE.md's diagram. Names may be patterns such as `environments/*`. */
export interface Diagram {
  readonly arrows: readonly Arrow[];
  /** Rooms that may import only these packages, and no module of Node. */
  readonly pure: ReadonlyMap<string, readonly string[]>;
  /** Every name in the diagram, with its line. */
  readonly names: ReadonlyMap<string, number>;
}

export interface Arrow {
  readonly from: string;
  readonly to: string;
}

/** A line of the diagram has a syntax error. */
export class DiagramError extends Error {
  override readonly name = "DiagramError";
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

const BLOCK = /^```diagram\n([\s\S]*?)^```$/m;
const NAME = /^[a-z0-9-]+(?:\/(?:[a-z0-9-]+|\*))?$/;

/**
 * Parses the fenced block `diagram`. Its lines are `a, b -> c, d` (a and b may import c and d), `c <- a` (a may import c)
 * or `a imports zod only`. Text in parentheses is a comment.
 */
export function readDiagram(markdown: string): Diagram {
  const block = BLOCK.exec(markdown);
  if (block === null) throw new DiagramError(1, "no fenced block named `diagram`");
  const firstLine = lineAt(markdown, block.index) + 1;
  const arrows: Arrow[] = [];
  const pure = new Map<string, string[]>();
  const names = new Map<string, number>();
  const readNames = (text: string, line: number): string[] => {
    const list = text.split(",").map((name) => name.trim());
    for (const name of list) {
      if (!NAME.test(name)) throw new DiagramError(line, `'${name}' is not the name of a room`);
      if (!names.has(name)) names.set(name, line);
    }
    return list;
  };
  for (const [index, text] of (block[1] as string).split("\n").entries()) {
    const line = firstLine + index;
    const rule = text.replace(/\([^)]*\)/g, "").trim();
    if (rule === "") continue;
    const alone = /^(\S+)\s+imports\s+(.+)\s+only$/.exec(rule);
    if (alone !== null) {
      for (const room of readNames(alone[1] as string, line)) pure.set(room, (alone[2] as string).split(/,\s*/));
      continue;
    }
    const [left, arrow, right, rest] = rule.split(/\s*(->|<-)\s*/);
    if (left === undefined || right === undefined || rest !== undefined) {
      throw new DiagramError(line, `cannot parse '${text.trim()}': write 'a -> b', 'b <- a' or 'a imports zod only'`);
    }
    for (const one of readNames(left, line)) {
      for (const other of readNames(right, line)) arrows.push(arrow === "->" ? { from: one, to: other } : { from: other, to: one });
    }
  }
  return { arrows, pure, names };
}

/** `environments/*` matches `environments/echo`; any other name matches itself. */
export function covers(name: string, room: string): boolean {
  return name.endsWith("/*") ? room.startsWith(name.slice(0, -1)) : name === room;
}

export function mayImport(diagram: Diagram, from: string, to: string): boolean {
  return diagram.arrows.some((arrow) => covers(arrow.from, from) && covers(arrow.to, to));
}
