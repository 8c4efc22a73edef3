import { catalogue, hostRoutes, PlatformError, toolDescriptor } from "@aenv/contract";
import type { Sandbox, SandboxEngine } from "@aenv/sandbox";
import { z } from "zod";
import type { InspectOptions } from "../hub/publishing/publisher.ts";
import type { Metadata } from "../hub/versions/environment-version.ts";
import { requestSandbox, type SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { Pool } from "./pool.ts";
import { explainMissing, type Program, programOf, programVariables } from "./program.ts";
import { readProgram } from "./program-offer.ts";
import type { RuntimePolicy } from "./runtimes.ts";
import type { Scheduler, WorkLimits } from "./scheduler.ts";

export interface VerifierOptions {
  readonly engine: Pick<SandboxEngine, "name" | "can" | "templates">;
  readonly pool: Pool;
  readonly clients: SandboxClients;
  readonly runtimes: RuntimePolicy;
  readonly startTimeoutMs: number;
  /** How long a verification may wait in the queue. */
  readonly waitTimeoutMs: number;
  readonly scheduler: Scheduler;
}

/** Limits of verifications in the queue; above them a request is refused with 429. */
export const WAITING_VERIFICATIONS = { maxWaiting: 256, maxWaitingPerOwner: 16 } as const satisfies Partial<WorkLimits>;

/**
 * Verifies bundles: starts each in a process of its own, asks it what it offers, and destroys the process. A bundle that fails here would
 * fail for the environment's users.
 */
export class Verifier {
  readonly #options: VerifierOptions;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: VerifierOptions) {
    this.#options = options;
  }

  /** How many verifications run now. */
  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#options.scheduler.depth("verifications");
  }

  /** What the bundle in a folder offers. Counts against the limits of the owner, who publishes it. */
  async verify(folder: string, options: InspectOptions): Promise<Metadata> {
    const { owner, signal } = options;
    const { scheduler, waitTimeoutMs } = this.#options;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(tooBusy(waitTimeoutMs)), waitTimeoutMs);
    const work = () => {
      clearTimeout(timer);
      const running = this.#run(folder, options).finally(() => this.#running.delete(running));
      this.#running.add(running);
      return running;
    };
    try {
      const waiting = AbortSignal.any([late.signal, this.#stop.signal, ...(signal ? [signal] : [])]);
      return await scheduler.run({ kind: "verifications", owner }, work, waiting);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Aborts running and waiting verifications; resolves when none of their processes is left. */
  async close(): Promise<void> {
    this.#stop.abort(new PlatformError("server.draining", "the server is shutting down; publish again at another, or later"));
    await Promise.allSettled(this.#running);
  }

  async #run(folder: string, options: InspectOptions): Promise<Metadata> {
    const { clients, startTimeoutMs } = this.#options;
    const deadline = AbortSignal.timeout(startTimeoutMs);
    const signal = AbortSignal.any([deadline, this.#stop.signal, ...(options.signal ? [options.signal] : [])]);
    const program = programOf(options.publication, this.#options.engine, options.publication.config.deployConfig?.arguments);
    const starting = program === null ? this.#load(folder, options, signal) : this.#start(program, folder, options, signal);
    const sandbox = await starting.catch((cause: unknown) => {
      if (!deadline.aborted) throw cause;
      const what = program === null ? "the bundle was not loaded" : "its program did not answer";
      throw new PlatformError("instance.start_timeout", `${what} within ${startTimeoutMs / 1_000} s`, { cause });
    });
    try {
      if (program !== null) return await readProgram(clients.pool(sandbox.id, sandbox.address), signal);
      const answer = await requestSandbox(clients, sandbox.id, sandbox.address, {
        method: hostRoutes.describe.method,
        path: hostRoutes.describe.path,
        timeoutMs: startTimeoutMs,
        maxBytes: responseLimits.offer,
        signal,
      });
      return offer.parse(answer);
    } finally {
      await sandbox.destroy();
    }
  }

  async #load(folder: string, { owner, variables, publication }: InspectOptions, signal: AbortSignal): Promise<Sandbox> {
    const { pool, runtimes } = this.#options;
    const resources = pool.resourcesFor(publication);
    return pool.claim(
      { owner, folder, digest: folder, variables, environment: null, runtime: runtimes.runtimeOf([owner]), resources },
      signal,
    );
  }

  async #start(program: Program, folder: string, options: InspectOptions, signal: AbortSignal): Promise<Sandbox> {
    const { owner, variables, publication } = options;
    const { pool, runtimes, engine } = this.#options;
    const resources = pool.resourcesFor(publication);
    try {
      const own = { ...programVariables(publication.config), ...variables };
      return await pool.program({ owner, program, folder, variables: own, runtime: runtimes.runtimeOf([owner]), resources }, signal);
    } catch (error) {
      throw explainMissing(error, program, engine);
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
