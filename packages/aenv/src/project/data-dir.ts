import { dataFolder, homeFolder } from "@aenv/server/folders";
import type { Terminal } from "../terminal/terminal.ts";

/** Where the data of benchmarks is kept, as a server that is started with these variables has it. */
export function dataDir(env: Terminal["env"]): string {
  return dataFolder(env.AENV_DATA_DIR, homeFolder(env.AENV_HOME));
}
