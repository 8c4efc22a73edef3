import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isNewEnough } from "../../bin/node-version.js";

/**
 * Whether a project needs Node as a dependency. The Node that runs this process does not decide it: `npx` and `npm run` put
 * `node_modules/.bin` first on PATH, and a new project does not have one there yet.
 */
export function isMachinesNodeTooOld(path: string | undefined): boolean {
  if (path === undefined) return false;
  for (const folder of path.split(delimiter)) {
    const node = join(folder, "node");
    if (folder === "" || folder.includes("node_modules") || !existsSync(node)) continue;
    try {
      const version = execFileSync(node, ["--version"], { encoding: "utf8", timeout: 10_000 });
      return !isNewEnough(version.trim().replace(/^v/, ""));
    } catch {
      return true;
    }
  }
  return true;
}
