import { homedir } from "node:os";

/** A path, or what ends in one, as people write it. */
export function tildePath(path: string): string {
  return path.replace(`${homedir()}/`, "~/");
}
