/** Both exist in every supported version of Node, and are not yet in TypeScript's library. */
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { readonly source: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
};

/** The value of a JSON text. `JSON.stringify` writes its numbers as the text has them: `2.0` instead of `2`. */
export function parseWithNotation(text: string): unknown {
  return parse(text, (_, value, { source }) => (typeof value === "number" ? rawJSON(source) : value));
}
