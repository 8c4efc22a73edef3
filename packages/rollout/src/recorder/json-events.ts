import { isObject, parseBoundedJson, sseEvents } from "@aenv/contract";

/** The JSON objects in the text of a stream of server-sent events. */
export function eventsOf(text: string): Record<string, unknown>[] {
  return sseEvents(text).flatMap(({ data }) => {
    try {
      const value: unknown = parseBoundedJson(data);
      return isObject(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}
