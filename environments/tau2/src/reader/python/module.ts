import type { Node } from "../../python/syntax/node.ts";
import { ReaderError } from "../error.ts";
import { type Line, readLines } from "./lines.ts";
import { LineParser, located } from "./source.ts";

export interface Assignment {
  name: string;
  annotation: Node | null;
  /** Null if there is only an annotation. A value that cannot be parsed has the kind `code`. */
  value: Node | null;
  line: number;
}

export interface Parameter {
  name: string;
  annotation: Node | null;
  default: Node | null;
  isVariadic: boolean;
}

export interface Method {
  name: string;
  decorators: Node[];
  parameters: Parameter[];
  docstring: string | null;
  /** Assignments to plain names anywhere in its body. */
  locals: Assignment[];
  line: number;
}

export interface Class {
  name: string;
  bases: Node[];
  docstring: string | null;
  fields: Assignment[];
  methods: Method[];
  line: number;
}

export interface Module {
  /** Imports by local name; `name` is null if the module itself is imported. */
  imports: Map<string, { module: string; name: string | null }>;
  stars: string[];
  classes: Map<string, Class>;
  functions: Method[];
  assignments: Map<string, Assignment>;
}

/** Reads the declarations of a module; function bodies are only searched for docstrings and assignments. */
export function readModule(source: string): Module {
  const module: Module = { imports: new Map(), stars: [], classes: new Map(), functions: [], assignments: new Map() };
  located(() => readBlock(readLines(source), module));
  return module;
}

function readBlock(lines: Line[], module: Module): void {
  let decorators: Node[] = [];
  for (const line of lines) {
    const parser = new LineParser(line.tokens);
    if (parser.take("@")) {
      decorators.push(parser.argument());
      continue;
    }
    if (parser.take("from")) readFrom(parser, module);
    else if (parser.take("import")) readImport(parser, module);
    else if (parser.take("class")) {
      const found = readClass(parser, line);
      module.classes.set(found.name, found);
    } else if (isFunction(parser)) module.functions.push(readFunction(parser, line, decorators));
    else if (["if", "else", "elif", "try", "except", "finally"].some((word) => parser.is(word))) readBlock(line.block, module);
    else {
      const found = readAssignment(line);
      if (found) module.assignments.set(found.name, found);
    }
    decorators = [];
  }
}

function readFrom(parser: LineParser, module: Module): void {
  const from = dotted(parser);
  parser.expect("import");
  if (parser.take("*")) {
    module.stars.push(from);
    return;
  }
  const isGrouped = parser.take("(");
  while (!parser.isEnd && !parser.is(")")) {
    const name = parser.name();
    module.imports.set(parser.take("as") ? parser.name() : name, { module: from, name });
    if (!parser.take(",")) break;
  }
  if (isGrouped) parser.expect(")");
  parser.expectEnd();
}

function readImport(parser: LineParser, module: Module): void {
  do {
    const name = dotted(parser);
    if (parser.take("as")) module.imports.set(parser.name(), { module: name, name: null });
    else module.imports.set(name.split(".")[0] as string, { module: name.split(".")[0] as string, name: null });
  } while (parser.take(","));
  parser.expectEnd();
}

function dotted(parser: LineParser): string {
  let name = "";
  for (;;) {
    if (parser.take(".")) name += ".";
    else if (parser.take("...")) name += "...";
    else if (parser.is("import") && name !== "") return name;
    else {
      name += parser.name();
      if (!parser.is(".")) return name;
    }
  }
}

function readClass(parser: LineParser, line: Line): Class {
  const name = parser.name();
  const bases: Node[] = [];
  if (parser.take("(")) {
    while (!parser.take(")")) {
      const base = parser.argument();
      if (parser.take("=")) parser.argument();
      else bases.push(base);
      if (!parser.take(",") && !parser.is(")")) throw new ReaderError(`the bases of class ${name} cannot be parsed`, line.number);
    }
  }
  parser.expect(":");
  const found: Class = { name, bases, docstring: docstringOf(line.block), fields: [], methods: [], line: line.number };
  let decorators: Node[] = [];
  for (const inner of line.block) {
    const member = new LineParser(inner.tokens);
    if (member.take("@")) {
      decorators.push(member.argument());
      continue;
    }
    if (isFunction(member)) found.methods.push(readFunction(member, inner, decorators));
    else {
      const field = readAssignment(inner);
      if (field) found.fields.push(field);
    }
    decorators = [];
  }
  return found;
}

function isFunction(parser: LineParser): boolean {
  return parser.take("def") || (parser.take("async") && parser.take("def"));
}

function readFunction(parser: LineParser, line: Line, decorators: Node[]): Method {
  const name = parser.name();
  if (parser.take("[")) throw new ReaderError(`the function ${name} has type parameters, which are not supported`, line.number);
  parser.expect("(");
  const parameters: Parameter[] = [];
  while (!parser.take(")")) {
    const isVariadic = parser.take("*") || parser.take("**");
    const isMark = parser.take("/") || (isVariadic && parser.is(","));
    if (!isMark) {
      parameters.push({
        name: parser.name(),
        annotation: parser.take(":") ? parser.argument() : null,
        default: parser.take("=") ? parser.argument() : null,
        isVariadic,
      });
    }
    if (!parser.take(",") && !parser.is(")")) throw new ReaderError(`the parameters of ${name} cannot be parsed`, parser.line);
  }
  return { name, decorators, parameters, docstring: docstringOf(line.block), locals: localsOf(line.block), line: line.number };
}

function docstringOf(block: Line[]): string | null {
  const first = block[0];
  if (!first || first.tokens.length === 0 || !first.tokens.every((token) => token.kind === "string")) return null;
  return first.tokens.map((token) => (token.kind === "string" ? token.value : "")).join("");
}

function localsOf(block: Line[]): Assignment[] {
  return block.flatMap((line) => [readAssignment(line) ?? [], localsOf(line.block)].flat());
}

function readAssignment(line: Line): Assignment | null {
  const [target, sign] = line.tokens;
  if (target?.kind !== "name" || sign?.kind !== "operator" || (sign.text !== "=" && sign.text !== ":")) return null;
  if (line.block.length > 0) return null;
  const parser = new LineParser(line.tokens.slice(2));
  if (parser.isEnd) return null;
  const annotation = sign.text === ":" ? parser.argument() : null;
  const hasValue = sign.text === "=" || parser.take("=");
  const value = hasValue && !parser.isEnd ? parser.argument() : null;
  return {
    name: target.text,
    annotation,
    value: value && parser.isEnd ? value : hasValue ? { kind: "code", what: "unknown", line: line.number } : null,
    line: line.number,
  };
}
