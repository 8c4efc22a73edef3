import { catalogue, PlatformError, toolDescriptor, type Variables } from "@aenv/contract";
import { z } from "zod";
import type { InspectOptions } from "../hub/publishing/publisher.ts";
import type { Metadata } from "../hub/versions/environment-version.ts";
import { requestSandbox, type SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import { FairQueue } from "./fair-queue.ts";
import type { Pool } from "./pool.ts";

export interface VerifierOptions {
  readonly pool: Pool;
  readonly clients: SandboxClients;
  readonly startTimeoutMs: number;
  /** How long a verification may wait for its turn. */
  readonly waitTimeoutMs: number;
  /** Verifications that run at the same time, in all and of one owner; the others wait, owner by owner in turn. */
  readonly atOnce: number;
  readonly atOncePerOwner: number;
}

/** Whoever finds so many waiting is answered with 429 at once. */
const MAX_WAITING = 256;
const MAX_WAITING_PER_OWNER = 16;

/**
 * Verifies bundles: starts each in a process of its own, asks it what it offers, and ends it. What fails here would fail for the
 * environment's users.
 */
export class Verifier {
  readonly #options: VerifierOptions;
  readonly #queue: FairQueue;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: VerifierOptions) {
    this.#options = options;
    this.#queue = new FairQueue({
      what: "verifications",
      atOnce: options.atOnce,
      atOncePerOwner: options.atOncePerOwner,
      maxWaiting: MAX_WAITING,
      maxWaitingPerOwner: MAX_WAITING_PER_OWNER,
    });
  }

  /** For metrics. */
  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#queue.depth;
  }

  /** What the bundle in a folder offers. It counts against the owner, who publishes it. */
  async inspect(folder: string, { owner, variables, signal }: InspectOptions): Promise<Metadata> {
    const { waitTimeoutMs } = this.#options;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(tooBusy(waitTimeoutMs)), waitTimeoutMs);
    const work = () => {
      clearTimeout(timer);
      const running = this.#run(folder, variables, signal).finally(() => this.#running.delete(running));
      this.#running.add(running);
      return running;
    };
    try {
      return await this.#queue.run(owner, work, AbortSignal.any([late.signal, this.#stop.signal, ...(signal ? [signal] : [])]));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Gives up what runs and what waits; resolves when no process of it is left. */
  async close(): Promise<void> {
    this.#stop.abort(new PlatformError("server.draining", "the server is shutting down; publish again at another, or later"));
    await Promise.allSettled(this.#running);
  }

  async #run(folder: string, variables: Variables, left?: AbortSignal): Promise<Metadata> {
    const { pool, clients, startTimeoutMs } = this.#options;
    const deadline = AbortSignal.timeout(startTimeoutMs);
    const signal = AbortSignal.any([deadline, this.#stop.signal, ...(left ? [left] : [])]);
    const sandbox = await pool.claim({ folder, digest: folder, variables, environment: null }, signal).catch((cause: unknown) => {
      if (!deadline.aborted) throw cause;
      throw new PlatformError("instance.start_timeout", `the bundle was not loaded within ${startTimeoutMs / 1_000} s`, { cause });
    });
    try {
      const answer = await requestSandbox(clients, sandbox.id, sandbox.address, {
        method: "GET",
        path: "/env-instance",
        timeoutMs: startTimeoutMs,
        maxBytes: responseLimits.offer,
        signal,
      });
      return offer.parse(answer);
    } finally {
      await sandbox.destroy();
    }
  }
}

function tooBusy(waitedMs: number): PlatformError {
  const message = `the server is busy: this verification has waited ${waitedMs / 1_000} s for its turn; publish again in a moment`;
  return new PlatformError("quota.exceeded", message, { details: { retryAfterSeconds: 10 } });
}

const offer = z.object({
  tools: z.array(toolDescriptor),
  catalogue,
  taskCount: z.number().int().nullable(),
  tasksProblem: z.string().nullable().default(null),
  keepsStateInModules: z.boolean(),
});
