import { isObject } from "@aenv/contract";
import { defaultSettings, type Settings } from "../../platform/settings.ts";
import { Failure } from "../../terminal/failure.ts";

/** Keys of older documents that are elsewhere now. */
const moved: Readonly<Record<string, string>> = {
  hub_backend: "hub_config.hub_backend",
  api_key: "hub_config.api_key",
  timeout: "hub_config.timeout",
};

/** A dotted path into the settings; its first part must be a setting that exists. */
export function parseKey(text: string, known: Settings): string[] {
  const parts = text.split(".");
  const tops = [...new Set([...Object.keys(defaultSettings), ...Object.keys(known)])];
  if (parts.some((part) => part === "" || part === "__proto__")) throw new Failure(`'${text}' is not a key`, { exit: "usage" });
  if (tops.includes(parts[0] as string)) return parts;
  const better = moved[text] ?? `${parts[0]}_config`;
  const hint =
    moved[text] !== undefined || tops.includes(better)
      ? `Did you mean ${[better, ...(moved[text] ? [] : parts.slice(1))].join(".")}?`
      : undefined;
  throw new Failure(`there is no setting '${text}'`, { exit: "usage", hint: hint ?? `The settings are: ${tops.join(", ")}.` });
}

export function valueAt(settings: Settings, key: readonly string[]): unknown {
  let here: unknown = settings;
  for (const part of key) {
    if (!isObject(here) || !Object.hasOwn(here, part)) return undefined;
    here = here[part];
  }
  return here;
}

/** The settings with one value changed; missing objects on its path are created. */
export function withValue(settings: Settings, key: readonly string[], value: unknown): Settings {
  const [first, ...rest] = key as [string, ...string[]];
  const inner = settings[first];
  return { ...settings, [first]: rest.length === 0 ? value : withValue(isObject(inner) ? inner : {}, rest, value) };
}

/** A value that is not valid JSON is text: `30` is a number, `localhost` is text. */
export function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
