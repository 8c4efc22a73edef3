import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** The home folder: the given one, else `~/.aenv`. */
export function homeFolder(given: string | undefined): string {
  return given ? absolute(given) : join(homedir(), ".aenv");
}

/** The folder of the benchmarks' data: the given one, else `data` below the home. */
export function dataFolder(given: string | undefined, home: string): string {
  return given ? absolute(given) : join(home, "data");
}

function absolute(path: string): string {
  return resolve(path.replace(/^~(?=$|\/)/, homedir()));
}
