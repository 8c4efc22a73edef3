import type { ToolCall } from "../core/messages/messages.ts";
import { writeJson } from "../python/json/writer.ts";
import { Dict, type PyValue } from "../python/values/values.ts";
import { dictAt, textAt } from "./vectors.ts";

/** A recorded value as plain JSON, to be compared as it prints. */
export function comparable(value: PyValue): Record<string, unknown> {
  return JSON.parse(writeJson(value));
}

/** The call that a recorded step or call stands for; its arguments keep ints and floats apart. */
export function callOf(value: PyValue, id = ""): ToolCall {
  if (!(value instanceof Dict)) throw new Error("a recorded call is no object");
  const requestor = textAt(value, "requestor");
  // A requestor that is neither is passed on: the environment has an answer to it.
  return { id, name: textAt(value, "name"), arguments: dictAt(value, "args"), requestor: requestor as ToolCall["requestor"] };
}
