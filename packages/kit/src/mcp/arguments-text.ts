/** A number with the text it was written as; `JSON.stringify` writes that text again. */
interface NumberSource {
  readonly source: string;
}

/** Both are in every Node that we run on, and not yet in TypeScript's library. */
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: NumberSource) => unknown): unknown;
  rawJSON(text: string): unknown;
};

/** The arguments of a `tools/call` in a request's body, alone or among others, as they are written there. */
export function argumentsText(body: string, id: string | number): string {
  const whole = parse(body, (_, value, { source }) => (typeof value === "number" ? rawJSON(source) : value));
  const messages = (Array.isArray(whole) ? whole : [whole]) as { id?: unknown; params?: { arguments?: unknown } }[];
  const wanted = JSON.stringify(id);
  const message = messages.find((one) => JSON.stringify(one.id) === wanted);
  return JSON.stringify(message?.params?.arguments ?? {});
}
