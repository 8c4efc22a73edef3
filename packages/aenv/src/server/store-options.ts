import { resolve } from "node:path";
import type { BackupManifest, ServerConfig } from "@aenv/server";
import type { Command } from "commander";
import { countText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Which server's files a command uses, on the server's machine. */
export interface StoreOptions {
  readonly home?: string;
  readonly store?: string;
  readonly config?: string;
}

export function addStoreOptions(command: Command): Command {
  return command
    .option("--home <folder>", "the server's home folder [$AENV_HOME]")
    .option("--store <url>", "the server's store, if it is not below its home [$AENV_STORE]")
    .option("-c, --config <file>", "the server's config file, if it has one");
}

export async function readStoreConfig({ home, store, config: file }: StoreOptions, { cwd, env }: Terminal): Promise<ServerConfig> {
  // Loaded only here: other commands of a group do not need the server.
  const { readServerConfig } = await import("@aenv/server");
  return readServerConfig({
    flags: { ...(home !== undefined && { home: resolve(cwd, home) }), store },
    variables: env,
    ...(file !== undefined && { file: resolve(cwd, file) }),
  });
}

/** `3 environments, 1 snapshot, 2 tokens`. */
export function contentsText(contents: BackupManifest["contents"]): string {
  const known = Object.entries(contents).filter(([, count]) => count > 0);
  return known.length === 0 ? "nothing yet" : known.map(([noun, count]) => countText(count, noun.slice(0, -1))).join(", ");
}
