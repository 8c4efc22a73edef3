import { createHash } from "node:crypto";
import type { Sandbox, SandboxEngine } from "@aenv/sandbox";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";

export interface WarmProgramsOptions {
  readonly engine: Pick<SandboxEngine, "can" | "removeSnapshot">;
  readonly space: SnapshotSpace;
  /** Called once for each kind of program that cannot be stored or copied. */
  readonly onFailure: (environment: string, error: unknown) => void;
  readonly now: () => number;
}

/** A program for one instance, of an environment with `deployConfig.warmStart`. */
export interface WarmProgram {
  readonly environment: string;
  /** All that the program depends on: only instances for which it is the same are copies of each other. */
  readonly inputs: unknown;
  readonly start: () => Promise<Sandbox>;
  readonly copy: (snapshot: string) => Promise<Sandbox>;
  /** Of the request for the instance. */
  readonly signal: AbortSignal;
}

interface Stored {
  /** Its value is null if the program cannot be stored or copied. */
  readonly snapshot: Promise<string | null>;
  /** The value of `snapshot` when it is known. */
  id: string | null;
  usedAt: number;
}

const IDLE_MS = 30 * 60_000;
/** Callers choose variables and arguments, and each combination is stored. */
const MAX_STORED = 32;

/** Programs that answer, stored with their memory before an instance has used them. Later instances start as copies. */
export class WarmPrograms {
  readonly #options: WarmProgramsOptions;
  /** By a hash of the inputs, which may be long. Those that were used last are at the end. */
  readonly #stored = new Map<string, Stored>();
  readonly #stop = new AbortController();
  #copies = 0;

  constructor(options: WarmProgramsOptions) {
    this.#options = options;
  }

  /** How many programs were started as copies. */
  get copies(): number {
    return this.#copies;
  }

  /** A copy of the stored program. The first one is started, and stored before it is returned; others wait for that. */
  async start(program: WarmProgram): Promise<Sandbox> {
    const { now } = this.#options;
    const key = createHash("sha256").update(JSON.stringify(program.inputs)).digest("hex");
    const known = this.#stored.get(key);
    if (known === undefined) return this.#startFirst(key, program);
    known.usedAt = now();
    this.#stored.delete(key);
    this.#stored.set(key, known);
    const snapshot = await known.snapshot;
    program.signal.throwIfAborted();
    if (snapshot === null) return program.start();
    try {
      const copied = await program.copy(snapshot);
      this.#copies++;
      return copied;
    } catch (error) {
      // A request that was cancelled says nothing about the stored program.
      program.signal.throwIfAborted();
      if (this.#stored.get(key) === known) this.#stored.set(key, { snapshot: Promise.resolve(null), id: null, usedAt: now() });
      this.#options.onFailure(program.environment, error);
      await this.#remove(snapshot);
      return program.start();
    }
  }

  /** Removes those that nobody has used for a while. */
  async trim(): Promise<void> {
    const { now } = this.#options;
    for (const [key, { usedAt }] of this.#stored) if (usedAt < now() - IDLE_MS) await this.#drop(key);
  }

  /** Does not wait for programs that are just starting: none is stored after this. */
  async close(): Promise<void> {
    this.#stop.abort();
    const ids = [...this.#stored.values()].flatMap(({ id }) => id ?? []);
    this.#stored.clear();
    for (const id of ids) await this.#remove(id);
  }

  async #startFirst(key: string, { environment, start }: WarmProgram): Promise<Sandbox> {
    const { engine, space, onFailure, now } = this.#options;
    if (!engine.can.snapshots.includes("memory") || this.#stop.signal.aborted) return start();
    const storing = Promise.withResolvers<string | null>();
    const stored: Stored = { snapshot: storing.promise, id: null, usedAt: now() };
    this.#stored.set(key, stored);
    const [oldest] = this.#stored.keys();
    if (this.#stored.size > MAX_STORED && oldest !== undefined) void this.#drop(oldest);
    let sandbox: Sandbox;
    try {
      sandbox = await start();
    } catch (error) {
      // Says nothing about the next one, which may have another deadline.
      this.#stored.delete(key);
      storing.resolve(null);
      throw error;
    }
    try {
      this.#stop.signal.throwIfAborted();
      const taken = await space.use(async () => sandbox.snapshot?.("memory", this.#stop.signal));
      stored.id = taken?.id ?? null;
      storing.resolve(stored.id);
    } catch (error) {
      storing.resolve(null);
      if (!this.#stop.signal.aborted) onFailure(environment, error);
    }
    return sandbox;
  }

  async #drop(key: string): Promise<void> {
    const stored = this.#stored.get(key);
    this.#stored.delete(key);
    const snapshot = await stored?.snapshot;
    if (snapshot != null) await this.#remove(snapshot);
  }

  async #remove(snapshot: string): Promise<void> {
    await this.#options.engine.removeSnapshot?.(snapshot).catch(() => {});
  }
}
