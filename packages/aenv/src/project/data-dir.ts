import { dataFolder, homeFolder } from "@aenv/server/folders";
import type { Terminal } from "../terminal/terminal.ts";

/** The folder of the benchmarks' data: the same that a server uses if it is started with these variables. */
export function dataDir(env: Terminal["env"]): string {
  return dataFolder(env.AENV_DATA_DIR, homeFolder(env.AENV_HOME));
}
