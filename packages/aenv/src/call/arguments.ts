import { isObject } from "@aenv/contract";
import { Failure } from "../terminal/failure.ts";

/** `key=value` words over one JSON object; each value is JSON if it is JSON, else text. */
export function parseArguments(words: readonly string[], json: string | undefined): Record<string, unknown> {
  const args: Record<string, unknown> = json === undefined ? {} : parseObject(json);
  for (const word of words) {
    const at = word.indexOf("=");
    if (at < 1) throw new Failure(`'${word}' is not key=value`, { exit: "usage", hint: "Write arguments as: n=3 note=hello" });
    args[word.slice(0, at)] = parseValue(word.slice(at + 1));
  }
  return args;
}

function parseObject(json: string): Record<string, unknown> {
  const value = parseValue(json);
  if (isObject(value)) return { ...value };
  throw new Failure(`--args is not a JSON object: ${json}`, { exit: "usage", hint: `Write it as: --args '{"n": 3}'` });
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
