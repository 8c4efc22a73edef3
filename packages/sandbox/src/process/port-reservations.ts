import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { PlatformError } from "@aenv/contract";

/** The sandboxes of this engine share the ports of the machine. Here are those on which programs are about to listen. */
export class PortReservations {
  readonly #reserved = new Set<number>();

  /** A port for a program: a free one, or the one that it insists on. The caller releases it when the program listens. */
  async reserve(wanted: number, isFlexible: boolean): Promise<number> {
    if (!isFlexible) return this.#reserveFixed(wanted);
    for (;;) {
      const port = await listenOnce(0);
      if (this.#reserved.has(port)) continue;
      this.#reserved.add(port);
      return port;
    }
  }

  release(port: number): void {
    this.#reserved.delete(port);
  }

  async #reserveFixed(port: number): Promise<number> {
    if (this.#reserved.has(port)) throw inUse(port);
    this.#reserved.add(port);
    try {
      return await listenOnce(port);
    } catch (cause) {
      this.#reserved.delete(port);
      throw (cause as NodeJS.ErrnoException).code === "EADDRINUSE" ? inUse(port, cause) : cause;
    }
  }
}

/** The port, or a free one for 0. Fails if another process listens on it. */
async function listenOnce(port: number): Promise<number> {
  const server = createServer().listen({ host: "127.0.0.1", port });
  await once(server, "listening");
  const { port: found } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return found;
}

function inUse(port: number, cause?: unknown): PlatformError {
  return new PlatformError(
    "sandbox.start_failed",
    `port ${port} of this machine is in use by another instance or program, and sandboxes that are processes share its ports; ` +
      "write {port} in runtime.command, or leave out runtime.port and listen on the variable PORT, so that each instance gets a port of its own",
    { cause, retryable: true },
  );
}
