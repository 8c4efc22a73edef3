import { textAt } from "@aenv/benchmark/testing";
import type { ToolCall } from "../../core/messages/messages.ts";
import { writeJson } from "../../python/json/writer.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import { dictAt } from "./vectors.ts";

/** A recorded value as plain JSON, for comparison. */
export function comparable(value: PyValue): Record<string, unknown> {
  return JSON.parse(writeJson(value));
}

/** The tool call of a recorded step; its arguments keep ints and floats apart. */
export function callOf(value: PyValue, id = ""): ToolCall {
  if (!(value instanceof Dict)) throw new Error("a recorded call is not an object");
  const requestor = textAt(value, "requestor");
  // An invalid requestor is passed on: the environment answers it with an error.
  return { id, name: textAt(value, "name"), arguments: dictAt(value, "args"), requestor: requestor as ToolCall["requestor"] };
}
