import { findNodeAtLocation, getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { Failure, type Place } from "../terminal/failure.ts";

export interface JsonFile {
  readonly value: unknown;
  /** The location of a value; for a missing value, that of its parent. */
  placeOf(path: readonly (string | number)[]): Place;
  /** The location of a field's name. */
  placeOfName(path: readonly (string | number)[]): Place;
}

/** Parses JSON and keeps the location of each value. Syntax errors are thrown with their locations. */
export function parseJsonFile(file: string, text: string): JsonFile {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false });
  if (errors.length > 0 || root === undefined) {
    const places = errors.map((error) => ({
      message: sentence(printParseErrorCode(error.error)),
      place: placeAt(file, text, error.offset),
    }));
    // One mistake causes more errors on the same line, so only the first of each line is kept.
    throw new Failure(places.filter((each, at) => each.place.line !== places[at - 1]?.place.line).slice(0, 3), {
      code: "environment.invalid",
      hint: "Correct the JSON: names and strings in double quotes, commas between values, no comma after the last.",
    });
  }
  return {
    value: getNodeValue(root),
    placeOf: (path) => placeAt(file, text, nearestNode(root, path).offset),
    placeOfName: (path) => {
      const node = nearestNode(root, path);
      return placeAt(file, text, (node.parent?.type === "property" ? node.parent : node).offset);
    },
  };
}

function nearestNode(root: Node, path: readonly (string | number)[]): Node {
  for (let length = path.length; length > 0; length--) {
    const node = findNodeAtLocation(root, path.slice(0, length));
    if (node !== undefined) return node;
  }
  return root;
}

function placeAt(file: string, text: string, offset: number): Place {
  const before = text.slice(0, offset).split("\n");
  return { file, line: before.length, column: (before.at(-1) as string).length + 1 };
}

/** `PropertyNameExpected` becomes `not valid JSON: property name expected`. */
function sentence(code: string): string {
  const words = code.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return `not valid JSON: ${words}`;
}
