import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { isLoopback, PlatformError } from "@aenv/contract";
import { type EngineHost, type EngineKind, engines, type OpenEngine, type SandboxEngine } from "@aenv/sandbox";
import type { ServerConfig } from "./config/config.ts";
import { lockHome } from "./peers/home-lock.ts";
import { SharedFolders } from "./task-sandboxes/shared-folders.ts";

/** The engine of the configuration, unless another kind is given. */
export function openEngine(
  config: ServerConfig,
  host: EngineHost,
  kind: EngineKind<ServerConfig> = engines[config.engine],
): Promise<OpenEngine> {
  return kind.open(config, host);
}

/** Destroys the sandboxes that a killed server has left in its home, for homes that no server will use again. */
export async function destroySandboxes(config: ServerConfig): Promise<void> {
  const unlock = lockHome(config.home);
  const ignore = () => undefined;
  const host = { runner: [], runnerCode: async () => "", log: ignore, onRefused: ignore, onLimit: ignore };
  const { engine } = await openEngine(config, host);
  try {
    await Promise.all((await engine.list()).map((sandbox) => sandbox.destroy()));
    const folders = new SharedFolders(config.home, engine);
    for (const id of await folders.list()) await folders.remove(id);
  } finally {
    await engine.close();
    unlock();
  }
}

/** Where the sandboxes are. Those that servers of every machine reach are not of one home. */
export async function locationOf({ home }: ServerConfig, { location }: SandboxEngine): Promise<string> {
  return location ?? `${hostname()}:${await realpath(home)}`;
}

/** Plain processes isolate little, so listening beyond loopback needs an explicit setting. */
export function assertSafe(config: ServerConfig, { can }: SandboxEngine): void {
  if (isLoopback(config.host) || can.isolates || config.allowProcessEngine) return;
  throw new PlatformError(
    "request.invalid",
    `listening on ${config.host} lets others run code in plain processes of this machine, which isolate little; use the engine oci or docker, set allowProcessEngine to allow it, or listen on 127.0.0.1`,
  );
}
