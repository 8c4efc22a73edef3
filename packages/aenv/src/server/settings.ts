import { formatBytes } from "@aenv/contract";
import { serverConfig, variableOf } from "@aenv/server";
import { z } from "zod";

/** One setting of the server, which is given by a flag, by a variable or in the config file. */
export interface ServerSetting {
  readonly key: string;
  /** As commander takes it: `--control-port <number>`. */
  readonly flag: string;
  readonly variable: string;
  readonly does: string;
  /** The default as text; empty if there is none. */
  readonly defaultText: string;
  readonly isList: boolean;
}

/** All settings, from the schema that validates them. */
export function serverSettings(): ServerSetting[] {
  return Object.entries(serverConfig.shape).map(([key, schema]) => {
    const kind = kindOf(schema);
    const name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return {
      key,
      flag: `--${name} ${kind === "true|false" ? `[${kind}]` : `<${kind}>`}`,
      variable: variableOf(key),
      does: schema.description ?? "",
      defaultText: defaultOf(key, schema),
      isList: kind === "a,b",
    };
  });
}

const probes: readonly (readonly [kind: string, text: string])[] = [
  ["true|false", "true"],
  ["duration", "30m"],
  ["url", "http://x"],
  ["url", "http://*.x"],
  ["size", "1 GiB"],
  ["number", "1000"],
  // A number with a small limit, or one below it.
  ["number", "1"],
  ["number", "0.5"],
];

/** The kind of value after the flag. It is found by trying values, so that only the schema defines what is allowed. */
function kindOf(schema: z.ZodType): string {
  const takes = (text: unknown) => schema.safeParse(text).success;
  if (takes("any text") || takes("name")) return "text";
  const kind = probes.find(([, text]) => takes(text))?.[0];
  if (kind !== undefined) return kind;
  const { enum: choices } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  if (choices !== undefined) return choices.join("|");
  return takes([]) ? "a,b" : "text";
}

/** Defaults that depend on the machine, as text. */
const inWords: Readonly<Record<string, string>> = { home: "~/.aenv", workers: "one per four cores" };

function defaultOf(key: string, schema: z.ZodType): string {
  const value: unknown = schema.parse(undefined);
  if (inWords[key] !== undefined) return inWords[key];
  return value === null || value === "" || (Array.isArray(value) && value.length === 0) ? "" : settingText(key, value);
}

/** A value as text: `10 GiB` for a number of bytes. */
export function settingText(key: string, value: unknown): string {
  return /Bytes(?:PerOwner)?$/.test(key) && typeof value === "number" ? formatBytes(value) : String(value);
}
