import { parseWithNotation } from "@aenv/contract";

/** The arguments of a `tools/call` as JSON, with numbers as they are written in the body, which may be a batch. */
export function argumentsText(body: string, id: string | number): string {
  const whole = parseWithNotation(body);
  const messages = (Array.isArray(whole) ? whole : [whole]) as { id?: unknown; params?: { arguments?: unknown } }[];
  const wanted = JSON.stringify(id);
  const message = messages.find((one) => JSON.stringify(one.id) === wanted);
  return JSON.stringify(message?.params?.arguments ?? {});
}
