import { parse, TomlDate, TomlError } from "smol-toml";
import type { Notes } from "../../fields/field.ts";
import { parseTaskConfig, type TaskConfig } from "./config.ts";
import type { Edition } from "./network.ts";

/** A file that is not TOML. */
export class TomlSyntaxError extends Error {
  override readonly name = "TomlSyntaxError";
}

/** A document of TOML: whole numbers are bigint, dates are objects. */
export function parseToml(source: string): Record<string, unknown> {
  if (source.startsWith("\uFEFF")) throw new TomlSyntaxError("the file starts with a byte order mark; save it as UTF-8 without one");
  try {
    return parse(source, { integersAsBigInt: true });
  } catch (error) {
    if (error instanceof TomlError) throw new TomlSyntaxError(error.message, { cause: error });
    throw error;
  }
}

/** `task.toml`. Throws `TomlSyntaxError` or `InvalidValue`. */
export function parseTaskToml(source: string, edition: Edition = "later", notes?: Notes): TaskConfig {
  const config = parseTaskConfig(parseToml(source), edition, notes);
  return { ...config, metadata: jsonOf(config.metadata) as TaskConfig["metadata"] };
}

/** A value of TOML as JSON has it: plain numbers, and ISO texts for dates. */
export function jsonOf(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof TomlDate) return dateText(value);
  if (Array.isArray(value)) return value.map(jsonOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, jsonOf(one)]));
}

/** As the reference writes them: microseconds unless they are 0, and `Z` for UTC. */
function dateText(date: TomlDate): string {
  const text = date.toISOString().replace(/[+-]00:00$/, "Z");
  return text.replace(/\.(\d{3})/, (_, fraction) => (fraction === "000" ? "" : `.${fraction}000`));
}
