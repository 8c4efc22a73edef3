import { parseDuration } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import { Commands } from "./commands.ts";
import { Files } from "./files.ts";
import { Listeners } from "./listeners.ts";
import { SandboxAccess, type SandboxAccessOptions } from "./sandbox-access.ts";
import { Terminals } from "./terminals.ts";

/** Puts together what callers do in the sandboxes of their instances. */
export function openCommands({ config, ...options }: SandboxAccessOptions & { readonly config: ServerConfig }) {
  const access = new SandboxAccess(options);
  const commands = new Commands(access, { atOnce: config.commandsPerInstance, timeoutMs: parseDuration(config.commandTimeout) });
  const terminals = new Terminals(commands);
  const listeners = new Listeners(access);
  return {
    commands,
    terminals,
    listeners,
    files: new Files(access),
    close: () => {
      listeners.close();
      terminals.close();
    },
  };
}
