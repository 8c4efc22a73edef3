import { parseDuration } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import type { Lifecycle } from "../lifecycle/lifecycle.ts";
import { Commands } from "./commands.ts";
import { Files } from "./files.ts";
import { Listeners } from "./listeners.ts";
import { SandboxAccess, type SandboxAccessOptions } from "./sandbox-access.ts";
import { Terminals } from "./terminals.ts";

export interface OpenCommandsOptions extends SandboxAccessOptions {
  readonly config: ServerConfig;
  readonly lifecycle: Lifecycle;
}

/** Puts together what callers do in the sandboxes of their instances. */
export function openCommands({ config, lifecycle, ...options }: OpenCommandsOptions) {
  const access = new SandboxAccess(options);
  const commands = new Commands(access, { atOnce: config.commandsPerInstance, timeoutMs: parseDuration(config.commandTimeout) });
  const terminals = new Terminals(commands);
  const listeners = new Listeners(access);
  lifecycle.on("close", () => {
    listeners.close();
    terminals.close();
  });
  return { commands, terminals, listeners, files: new Files(access) };
}
