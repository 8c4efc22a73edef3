import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Where everything of this machine's user is kept: as said, else `~/.aenv`. */
export function homeFolder(said: string | undefined): string {
  return said ? absolute(said) : join(homedir(), ".aenv");
}

/** Where the data of benchmarks is kept, a folder each: as said, else below the home. */
export function dataFolder(said: string | undefined, home: string): string {
  return said ? absolute(said) : join(home, "data");
}

function absolute(path: string): string {
  return resolve(path.replace(/^~(?=$|\/)/, homedir()));
}
