import { createHash } from "node:crypto";
import type { Sandbox } from "@aenv/sandbox";
import { StoredSandbox, type StoredSandboxOptions } from "./stored-sandbox.ts";

export interface WarmProgramsOptions extends Pick<StoredSandboxOptions, "engine" | "space"> {
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
  /** The signal of the request for the instance. */
  readonly signal: AbortSignal;
}

interface Stored {
  readonly sandbox: StoredSandbox;
  usedAt: number;
}

const IDLE_MS = 30 * 60_000;
/** Callers choose variables and arguments, and each combination is stored. */
const MAX_STORED = 32;

/** Programs that answer, stored with their memory before an instance has used them. Later instances start as copies. */
export class WarmPrograms {
  readonly #options: WarmProgramsOptions;
  /** Stored processes by a hash of their inputs, which may be long. Those that were used last are at the end. */
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
    const key = createHash("sha256").update(JSON.stringify(program.inputs)).digest("hex");
    const known = this.#stored.get(key);
    if (known === undefined) return this.#startFirst(key, program);
    known.usedAt = this.#options.now();
    this.#stored.delete(key);
    this.#stored.set(key, known);
    return (await known.sandbox.copy(program.copy, program.signal)) ?? program.start();
  }

  /** Removes those that nobody has used for a while. */
  async trim(): Promise<void> {
    const { now } = this.#options;
    for (const [key, { usedAt }] of this.#stored) if (usedAt < now() - IDLE_MS) await this.#drop(key);
  }

  /** Does not wait for programs that are just starting: none is stored after this. */
  async close(): Promise<void> {
    this.#stop.abort();
    for (const key of this.#stored.keys()) await this.#drop(key);
  }

  async #startFirst(key: string, { environment, start }: WarmProgram): Promise<Sandbox> {
    const { engine, space, onFailure, now } = this.#options;
    if (!engine.snapshots?.fidelities.includes("memory") || this.#stop.signal.aborted) return start();
    const sandbox = new StoredSandbox({
      engine,
      space,
      stop: this.#stop.signal,
      onFailure: (error) => onFailure(environment, error),
      onCopy: () => this.#copies++,
    });
    this.#stored.set(key, { sandbox, usedAt: now() });
    const [oldest] = this.#stored.keys();
    if (this.#stored.size > MAX_STORED && oldest !== undefined) void this.#drop(oldest);
    try {
      return await sandbox.first(start);
    } catch (error) {
      // Says nothing about the next one, which may have another deadline.
      if (this.#stored.get(key)?.sandbox === sandbox) this.#stored.delete(key);
      throw error;
    }
  }

  async #drop(key: string): Promise<void> {
    const stored = this.#stored.get(key);
    this.#stored.delete(key);
    await stored?.sandbox.drop();
  }
}
