import { homedir } from "node:os";

/** A path, or a text that ends in one, with `~` for the home folder. */
export function tildePath(path: string): string {
  return path.replace(`${homedir()}/`, "~/");
}
