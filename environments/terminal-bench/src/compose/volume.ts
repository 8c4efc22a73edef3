import { posix } from "node:path";
import { isProtected } from "../changes/rules.ts";
import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";

/** A folder of a service that is not one of its image. */
export interface ComposeVolume {
  /** Services that name the same one share it; null for a folder of its own. */
  readonly name: string | null;
  readonly path: string;
  readonly isReadOnly: boolean;
}

const TABLE_KEYS = ["type", "source", "target", "read_only", "volume"];

/** Throws `InvalidValue` for what is not supported. */
export function parseVolume(value: unknown, at: string): ComposeVolume {
  if (isTable(value)) {
    const unknown = Object.keys(value).find((key) => !TABLE_KEYS.includes(key)) ?? (isTable(value.volume) && "volume");
    if (value.type !== "volume") throw new InvalidValue(at, `the type '${value.type}' is not supported`);
    if (unknown) throw new InvalidValue(`${at}.${unknown}`, "it is not supported");
    return volumeOf(value.source == null ? null : String(value.source), String(value.target ?? ""), value.read_only === true, at);
  }
  const [first = "", path, options = "", more] = String(value).split(":");
  if (path === undefined) return volumeOf(null, first, false, at);
  const words = options.split(",").filter((word) => word !== "");
  const unknown = more ?? words.find((word) => !["ro", "rw", "z", "Z"].includes(word));
  if (unknown !== undefined) throw new InvalidValue(at, `'${unknown}' in '${value}' is not supported`);
  return volumeOf(first, path, words.includes("ro"), at);
}

function volumeOf(name: string | null, given: string, isReadOnly: boolean, at: string): ComposeVolume {
  const path = posix.normalize(given).replace(/(?<=.)\/$/, "");
  if (!path.startsWith("/") || path === "/") throw new InvalidValue(at, `'${given}' is not the path of a folder`);
  return { name, path, isReadOnly };
}

/**
 * Why the tests of a task cannot trust a volume that the agent shares with other services: they see its files as the agent left them.
 * Null if they can.
 */
export function volumeHazard({ path }: ComposeVolume): string | null {
  return isProtected(path) ? `a shared volume at ${path} could change the programs that run the tests, or their results` : null;
}
