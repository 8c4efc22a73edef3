import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";

export type ComposeVariables = Readonly<Record<string, string>>;

const VARIABLE = /\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-?+])((?:[^{}]|\$\{[^{}]*\})*))?\})/g;

/** Replaces `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `${NAME:+value}` in all texts of a document. `$$` is `$`. */
export function interpolate(value: unknown, variables: ComposeVariables, at = ""): unknown {
  if (typeof value === "string") return text(value, variables, at);
  if (Array.isArray(value)) return value.map((one, i) => interpolate(one, variables, `${at}[${i}]`));
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, interpolate(one, variables, at === "" ? key : `${at}.${key}`)]),
  );
}

function text(given: string, variables: ComposeVariables, at: string): string {
  return given.replace(VARIABLE, (_, dollar?: string, short?: string, long?: string, operator = "", more = "") => {
    if (dollar !== undefined) return "$";
    const name = short ?? long ?? "";
    const found = Object.hasOwn(variables, name) ? variables[name] : undefined;
    // With a colon, a variable that is set to nothing counts as not set.
    const isSet = found !== undefined && (found !== "" || !operator.startsWith(":"));
    switch (operator.slice(-1)) {
      case "-":
        return isSet ? found : text(more, variables, at);
      case "+":
        return isSet ? text(more, variables, at) : "";
      case "?":
        if (!isSet) throw new InvalidValue(at, `the variable ${name} is not set: ${text(more, variables, at)}`);
    }
    return found ?? "";
  });
}
