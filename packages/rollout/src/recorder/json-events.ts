import { isObject, parseBoundedJson } from "@aenv/contract";

/** The JSON objects in the text of a stream of server-sent events. */
export function eventsOf(text: string): Record<string, unknown>[] {
  return text.split(/\r?\n\r?\n/).flatMap((event) => {
    const data = event
      .split(/\r?\n/)
      .flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trimStart()] : []))
      .join("\n");
    try {
      const value: unknown = parseBoundedJson(data);
      return isObject(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}
