import { posix } from "node:path";
import { isProtected } from "../changes/rules.ts";
import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";

/** A folder of a service that is not one of its image. */
export interface ComposeVolume {
  /** Services that name the same one share it; null for a folder of its own. */
  readonly name: string | null;
  /** The file or folder of the task whose content it has at first, relative to the compose file; null for an empty folder. */
  readonly source: string | null;
  readonly path: string;
  readonly isReadOnly: boolean;
}

const TABLE_KEYS = ["type", "source", "target", "read_only", "volume", "bind"];
/** How a mount is labelled, or how fast its changes are seen elsewhere, means nothing for a copy. */
const OPTIONS = ["ro", "rw", "z", "Z", "cached", "delegated", "consistent"];

/** Throws `InvalidValue` for what is not supported. */
export function parseVolume(value: unknown, at: string): ComposeVolume {
  if (isTable(value)) {
    const { type, source = null, volume, bind } = value;
    if (type !== "volume" && type !== "bind") throw new InvalidValue(at, `the type '${type}' is not supported`);
    const isPlain = type === "volume" || !isTable(bind) || Object.keys(bind).every((key) => key === "create_host_path");
    const unknown =
      Object.keys(value).find((key) => !TABLE_KEYS.includes(key)) ?? (isTable(volume) ? "volume" : isPlain ? undefined : "bind");
    if (unknown !== undefined) throw new InvalidValue(`${at}.${unknown}`, "it is not supported");
    const name = type === "bind" ? `./${source ?? ""}` : source === null ? null : String(source);
    return volumeOf(name, String(value.target ?? ""), value.read_only === true, at);
  }
  const [first = "", path, options = "", more] = String(value).split(":");
  if (path === undefined) return volumeOf(null, first, false, at);
  const words = options.split(",").filter((word) => word !== "");
  const unknown = more ?? words.find((word) => !OPTIONS.includes(word));
  if (unknown !== undefined) throw new InvalidValue(at, `'${unknown}' in '${value}' is not supported`);
  return volumeOf(first, path, words.includes("ro"), at);
}

function volumeOf(name: string | null, path: string, isReadOnly: boolean, at: string): ComposeVolume {
  const isOfTask = name !== null && /^\.{1,2}(?:\/|$)/.test(name);
  const source = isOfTask ? sourceOf(name, at) : null;
  // A folder of the task is the same volume, however it is written.
  return { name: source === null ? name : `./${source}`, source, path: folderPathOf(path, at), isReadOnly };
}

/** Without `..`, also where it would lead back. */
function sourceOf(name: string, at: string): string {
  if (name.split("/").includes("..") || name.startsWith(".//"))
    throw new InvalidValue(at, `'${name}' leads out of the task's folder, which alone can be mounted`);
  return posix.normalize(name).replace(/\/$/, "");
}

export function folderPathOf(given: string, at: string): string {
  const path = posix.normalize(given).replace(/(?<=.)\/$/, "");
  if (!path.startsWith("/") || path === "/") throw new InvalidValue(at, `'${given}' is not the path of a folder`);
  return path;
}

/**
 * Why the tests of a task cannot trust a volume that the agent shares with other services: they see its files as the agent left them.
 * Null if they can.
 */
export function volumeHazard({ path }: ComposeVolume): string | null {
  return isProtected(path) ? `a shared volume at ${path} could change the programs that run the tests, or their results` : null;
}
