import type { Duplex } from "node:stream";
import { PlatformError } from "@aenv/contract";
import { isInitError } from "../init/error.ts";

/** Opens a connection to a port of a sandbox. Throws `sandbox.port_closed` if nothing listens there, or if the sandbox has ended. */
export async function connectPort(
  sandbox: { readonly id: string; readonly hasExited: boolean },
  port: number,
  connect: () => Promise<Duplex>,
): Promise<Duplex> {
  if (sandbox.hasExited) throw portClosed(sandbox.id, port);
  try {
    return await connect();
  } catch (error) {
    const isRefused = isInitError(error, "port_closed") || (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
    if (isRefused || sandbox.hasExited) throw portClosed(sandbox.id, port, error);
    throw error;
  }
}

export function portClosed(id: string, port: number, cause?: unknown): PlatformError {
  return new PlatformError("sandbox.port_closed", `no process of sandbox '${id}' listens on port ${port}`, { cause });
}
