import { readFileSync } from "node:fs";
import { isObject } from "@aenv/contract";
import { fileVariableOf } from "@aenv/server";
import { serverSettings } from "./settings.ts";

/** The source of each setting: its flag, its variable, the config file, or the default. */
export function settingSources(given: {
  readonly flags: Readonly<Record<string, unknown>>;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly file?: string;
}): Map<string, string> {
  const inFile: unknown = given.file === undefined ? {} : JSON.parse(readFileSync(given.file, "utf8"));
  return new Map(
    serverSettings().map(({ key, flag, variable }) => {
      if (given.flags[key] !== undefined) return [key, flag.split(" ")[0] as string];
      if (given.variables[variable]) return [key, `$${variable}`];
      if (given.variables[fileVariableOf(key)]) return [key, `$${fileVariableOf(key)}`];
      return [key, isObject(inFile) && Object.hasOwn(inFile, key) ? (given.file as string) : "default"];
    }),
  );
}
