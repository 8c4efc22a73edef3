import { createServer } from "node:net";
import { availableParallelism } from "node:os";
import { PlatformError } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { finish, listen, listenAt, portOf } from "../http/listen.ts";
import { GRACE_MS, type Lifecycle } from "../lifecycle/lifecycle.ts";
import { workersFor } from "./count.ts";
import type { WorkerSettings } from "./messages.ts";
import { openSocketFile } from "./socket-file.ts";
import { Workers, type WorkersOptions } from "./workers.ts";

export interface DataPortOptions
  extends Omit<WorkersOptions, "command" | "count" | "settings">,
    Pick<WorkerSettings, "version" | "isAccessOn" | "maxRowAgeMs"> {
  readonly config: ServerConfig;
  readonly gateway: Gateway;
  readonly lifecycle: Lifecycle;
  /** The command line of a worker; without it, this process serves the port. */
  readonly command: readonly string[] | undefined;
}

/** The data port, served by this process or by its workers. */
export interface DataPort {
  readonly port: number;
  /** Null if this process serves the port itself. */
  readonly workers: Workers | null;
}

/** How many processes serve the data port. */
export function workerCount(config: Pick<ServerConfig, "workers">, command: readonly string[] | undefined): number {
  if (command === undefined) {
    if ((config.workers ?? 1) === 1) return 1;
    throw new PlatformError("request.invalid", `workers is ${config.workers}, but this program cannot start workers; leave it at 1`);
  }
  // Only Linux divides the connections to a port between processes.
  const most = process.platform === "linux" ? availableParallelism() : 1;
  const count = config.workers ?? workersFor(most);
  if (count > 1 && process.platform !== "linux")
    throw new PlatformError("request.invalid", `workers is ${count}, but several processes can serve one port on Linux only; set it to 1`);
  return count;
}

export async function openDataPort(options: DataPortOptions): Promise<DataPort> {
  const { config, gateway, command, lifecycle } = options;
  const count = workerCount(config, command);
  if (command === undefined || count === 1) {
    await listen(gateway.server, config.host, config.dataPort);
    lifecycle.on("retire", () => gateway.server.retireConnections());
    lifecycle.on("finish", () => {
      gateway.drain();
      return finish(gateway.server, GRACE_MS);
    });
    return { port: portOf(gateway.server), workers: null };
  }
  const port = await freePort(config);
  const serverSocket = await openSocketFile(config.home);
  try {
    await listenAt(gateway.server, serverSocket);
    const { version, isAccessOn, maxRowAgeMs } = options;
    const settings: WorkerSettings = { config, port, version, isAccessOn, maxRowAgeMs, serverSocket };
    const workers = await Workers.open({ ...options, command, count, settings });
    lifecycle.on("retire", () => workers.retireConnections());
    lifecycle.on("finish", async () => {
      gateway.drain();
      workers.drain();
      await workers.finish(GRACE_MS);
      await finish(gateway.server, GRACE_MS);
    });
    return { port, workers };
  } catch (error) {
    await finish(gateway.server, 0);
    throw error;
  }
}

/** The port, if no other process has it. Workers share it, so they would not notice. */
async function freePort({ host, dataPort }: ServerConfig): Promise<number> {
  const probe = createServer();
  await listen(probe, host, dataPort);
  const port = portOf(probe);
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
