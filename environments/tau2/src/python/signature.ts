import { typeError } from "@aenv/benchmark";
import type { Dict, PyKey, PyValue } from "./values/values.ts";

/** A parameter without a default is required. */
export interface Parameter {
  readonly name: string;
  readonly defaultValue?: PyValue;
}

/** Binds keyword arguments to a function's parameters; raises the errors that Python raises. */
export function bind(qualifiedName: string, parameters: readonly Parameter[], args: Dict): Record<string, PyValue> {
  for (const key of args.keys()) {
    if (parameters.some(({ name }) => name === key)) continue;
    throw typeError(`${qualifiedName}() got an unexpected keyword argument '${String(key)}'`);
  }
  const bound: Record<string, PyValue> = {};
  const missing: string[] = [];
  for (const { name, defaultValue } of parameters) {
    const given = args.get(name);
    // None is null, not undefined: it counts as given, and the default is not used.
    if (given !== undefined) bound[name] = given;
    else if (defaultValue !== undefined) bound[name] = defaultValue;
    else missing.push(`'${name}'`);
  }
  if (missing.length === 0) return bound;
  const plural = missing.length === 1 ? "" : "s";
  throw typeError(`${qualifiedName}() missing ${missing.length} required positional argument${plural}: ${enumerated(missing)}`);
}

function enumerated(names: readonly string[]): string {
  if (names.length < 3) return names.join(" and ");
  return `${names.slice(0, -1).join(", ")}, and ${names.at(-1)}`;
}

/** Raises the errors of the reference's `make_tool_call`, which has parameters of its own. */
export function checkReservedNames(args: Dict): void {
  const keys: PyKey[] = [...args.keys()];
  if (args.has("requestor")) {
    throw typeError("tau2.environment.environment.Environment.make_tool_call() got multiple values for keyword argument 'requestor'");
  }
  if (keys.some((key) => typeof key !== "string")) throw typeError("keywords must be strings");
  const taken = keys.find((key) => key === "self" || key === "tool_name");
  if (taken !== undefined) throw typeError(`Environment.make_tool_call() got multiple values for argument '${String(taken)}'`);
}
