import { findNodeAtLocation, getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { Failure, type Place } from "../terminal/failure.ts";

export interface JsonFile {
  readonly value: unknown;
  /** Where a value stands; of one that is missing, where its parent stands. */
  placeOf(path: readonly (string | number)[]): Place;
  /** Where a field's name stands. */
  placeOfName(path: readonly (string | number)[]): Place;
}

/** Plain JSON, read so that every value knows its line; every mistake is told with its place. */
export function parseJsonFile(file: string, text: string): JsonFile {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false });
  if (errors.length > 0 || root === undefined) {
    const places = errors.map((error) => ({
      message: sentence(printParseErrorCode(error.error)),
      place: placeAt(file, text, error.offset),
    }));
    // One slip confuses the rest of the line; the first on each line is the one to read.
    throw new Failure(places.filter((each, at) => each.place.line !== places[at - 1]?.place.line).slice(0, 3), {
      code: "environment.invalid",
      hint: "Correct the JSON there: names and texts in double quotes, commas between, none after the last.",
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

/** `PropertyNameExpected` as people say it. */
function sentence(code: string): string {
  const words = code.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return `not valid JSON: ${words}`;
}
