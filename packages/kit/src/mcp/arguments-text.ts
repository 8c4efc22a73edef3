/** The source text of a parsed number. */
interface NumberSource {
  readonly source: string;
}

/** Both exist in every supported version of Node, and are not yet in TypeScript's library. */
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: NumberSource) => unknown): unknown;
  rawJSON(text: string): unknown;
};

/** The arguments of a `tools/call` as JSON, with numbers as they are written in the body, which may be a batch. */
export function argumentsText(body: string, id: string | number): string {
  const whole = parse(body, (_, value, { source }) => (typeof value === "number" ? rawJSON(source) : value));
  const messages = (Array.isArray(whole) ? whole : [whole]) as { id?: unknown; params?: { arguments?: unknown } }[];
  const wanted = JSON.stringify(id);
  const message = messages.find((one) => JSON.stringify(one.id) === wanted);
  return JSON.stringify(message?.params?.arguments ?? {});
}
