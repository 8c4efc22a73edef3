import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { PlatformError, TimedSignal } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import { Pool } from "undici";

/** One port of one sandbox. */
export interface SandboxPort {
  readonly sandboxId: string;
  readonly port: number;
}

interface Client {
  readonly pool: Pool;
  usedAt: number;
}

/** Connections to one port at the same time; further requests wait. */
const MAX_CONNECTIONS = 256;
const CONNECT_MS = 10_000;
const IDLE_MS = 60_000;

/**
 * Connections to ports inside sandboxes. The sandbox's engine opens each one and checks that the port belongs to the sandbox.
 * Sandbox ids are never reused, so a pooled connection never leads to another sandbox.
 */
export class PortClients {
  readonly #find: (sandboxId: string) => Promise<Sandbox | null>;
  readonly #clients = new Map<string, Client>();
  readonly #sandboxes = new Map<string, Sandbox>();

  constructor(find: (sandboxId: string) => Promise<Sandbox | null>) {
    this.#find = find;
  }

  /** Connections for HTTP requests to a port. */
  pool(port: SandboxPort): Pool {
    const now = performance.now();
    const key = `${port.sandboxId}:${port.port}`;
    let client = this.#clients.get(key);
    if (client === undefined) {
      this.#trim(now);
      client = { pool: this.#open(port), usedAt: now };
      this.#clients.set(key, client);
    }
    client.usedAt = now;
    return client.pool;
  }

  /** A connection that is not pooled. */
  async connect({ sandboxId, port }: SandboxPort, signal: AbortSignal): Promise<Duplex> {
    const sandbox = this.#sandboxes.get(sandboxId) ?? (await this.#findSandbox(sandboxId));
    if (sandbox?.ports === undefined) throw new PlatformError("sandbox.lost", `sandbox '${sandboxId}' is gone`);
    using limit = new TimedSignal(CONNECT_MS, signal);
    return await sandbox.ports.connect(port, limit.signal);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map(({ pool }) => pool.destroy()));
    this.#clients.clear();
  }

  #open(port: SandboxPort): Pool {
    return new Pool(`http://127.0.0.1:${port.port}`, {
      connections: MAX_CONNECTIONS,
      connect: (_, done) => {
        this.connect(port, NEVER).then(
          // undici needs no more than a stream, though its types ask for a socket.
          (stream) => done(null, stream as Socket),
          (error: Error) => done(error, null),
        );
      },
      keepAliveTimeout: 30_000,
      // No timeouts: the caller and the expiry of the link limit the duration.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async #findSandbox(sandboxId: string): Promise<Sandbox | null> {
    const sandbox = await this.#find(sandboxId);
    if (sandbox === null) return null;
    this.#sandboxes.set(sandboxId, sandbox);
    void sandbox.exited.then(() => this.#forget(sandbox));
    return sandbox;
  }

  #forget(sandbox: Sandbox): void {
    this.#sandboxes.delete(sandbox.id);
    for (const [key, { pool }] of this.#clients) {
      if (!key.startsWith(`${sandbox.id}:`)) continue;
      this.#clients.delete(key);
      void pool.destroy().catch(() => {});
    }
  }

  #trim(now: number): void {
    for (const [key, { pool, usedAt }] of this.#clients) {
      if (now - usedAt < IDLE_MS) continue;
      this.#clients.delete(key);
      // Requests in flight finish.
      void pool.close().catch(() => {});
    }
  }
}

const NEVER = new AbortController().signal;
