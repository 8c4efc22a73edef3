import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { isLoopback, PlatformError } from "@aenv/contract";
import type { ServerConfig } from "./config/config.ts";

/** Where the sandboxes are. Pods of a group are reached from every machine. */
export async function locationOf({ engine, home, kubeNamespace, kubeGroup }: ServerConfig): Promise<string> {
  if (engine === "kubernetes" && kubeGroup !== null) return `kubernetes:${kubeNamespace}/${kubeGroup}`;
  return `${hostname()}:${await realpath(home)}`;
}

/** Plain processes isolate little, so listening beyond loopback needs an explicit setting. */
export function assertSafe(config: ServerConfig): void {
  if (isLoopback(config.host) || config.engine !== "process" || config.allowProcessEngine) return;
  throw new PlatformError(
    "request.invalid",
    `listening on ${config.host} lets others run code in plain processes of this machine, which isolate little; use the engine oci or docker, set allowProcessEngine to allow it, or listen on 127.0.0.1`,
  );
}
