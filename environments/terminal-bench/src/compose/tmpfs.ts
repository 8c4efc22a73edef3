import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { mebibytesOf } from "./values.ts";
import { folderPathOf } from "./volume.ts";

/** A folder in memory. */
export interface ComposeTmpfs {
  readonly path: string;
  /** Null for Docker's default, half of the memory. */
  readonly sizeMb: number | null;
  readonly mode: number;
  readonly isExecutable: boolean;
}

/** Docker's, for all users. */
const MODE = 0o1777;
/** Options that every such folder has here. */
const ALWAYS = ["rw", "noexec", "nosuid", "nodev", "noatime", "relatime"];

/** An entry of `tmpfs`, such as `/run:size=64m,exec`. */
export function parseTmpfs(value: unknown, at: string): ComposeTmpfs {
  const [path = "", ...rest] = String(value).split(":");
  const found = { path: folderPathOf(path, at), sizeMb: null as number | null, mode: MODE, isExecutable: false };
  for (const option of rest.join(":").split(",")) {
    const [name = "", text = ""] = option.split("=");
    if (name === "size") found.sizeMb = mebibytesOf(text, `${at}.size`);
    else if (name === "mode") found.mode = modeOf(text, `${at}.mode`);
    else if (name === "exec") found.isExecutable = true;
    else if (option !== "" && !ALWAYS.includes(option)) throw new InvalidValue(at, `the option '${option}' of '${value}' is not supported`);
  }
  return found;
}

/** An entry of `volumes` whose type is `tmpfs`. */
export function parseTmpfsVolume(value: Readonly<Record<string, unknown>>, at: string): ComposeTmpfs {
  const known = ["type", "target", "tmpfs"];
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new InvalidValue(`${at}.${unknown}`, "it is not supported");
  const { size, mode, ...more } = isTable(value.tmpfs) ? value.tmpfs : {};
  const [other] = Object.keys(more);
  if (other !== undefined) throw new InvalidValue(`${at}.tmpfs.${other}`, "it is not supported");
  return {
    path: folderPathOf(String(value.target ?? ""), at),
    sizeMb: size == null ? null : mebibytesOf(size, `${at}.tmpfs.size`),
    mode: mode == null ? MODE : modeOf(typeof mode === "number" ? mode.toString(8) : String(mode), `${at}.tmpfs.mode`),
    isExecutable: false,
  };
}

function modeOf(text: string, at: string): number {
  if (!/^0?[0-7]{1,4}$/.test(text)) throw new InvalidValue(at, `'${text}' is not a mode such as 1777`);
  return Number.parseInt(text, 8);
}
