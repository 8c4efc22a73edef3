import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { PlatformError } from "@aenv/contract";
import {
  type EngineAbilities,
  type EngineEgress,
  type EngineSnapshots,
  noAbilities,
  type Sandbox,
  type SandboxEngine,
  type SandboxSpec,
} from "../engine/engine.ts";
import { EngineWork } from "../lifecycle/engine-work.ts";
import { probe } from "../lifecycle/readiness.ts";
import { existsAlready, startFailed } from "../lifecycle/start-errors.ts";
import { startWithin } from "../lifecycle/start-limits.ts";
import type { MemoryAbilities } from "./abilities.ts";
import { MemorySandbox } from "./sandbox.ts";
import { MemorySnapshots } from "./snapshots.ts";

/** Answers the requests of a program, and its upgrades if there are any. */
export type MemoryListener = RequestListener & { readonly upgrade?: (request: IncomingMessage, socket: Duplex) => void };

/** Simulates the program of a sandbox: returns the listener for its requests, or throws the reason of a failed start. */
export type MemoryProgram = (spec: SandboxSpec, self: MemorySandbox) => MemoryListener | Promise<MemoryListener>;

export interface MemoryEngineOptions {
  readonly start: MemoryProgram;
  /** Abilities that the program simulates. */
  readonly can?: MemoryAbilities;
  /** Snapshots for which there is space; unlimited by default. */
  readonly maxSnapshots?: number;
  /** What all sandboxes start with, such as the layer of an image: a part of their snapshots. */
  readonly layer?: string;
}

/** Sandboxes that are functions of this process, for tests: same lifecycle as in other engines, and they can be made to crash. */
export class MemoryEngine implements SandboxEngine {
  readonly name = "memory";
  readonly can: EngineAbilities;
  readonly egress?: EngineEgress;
  readonly snapshots?: EngineSnapshots;
  readonly #start: MemoryProgram;
  readonly #folder = mkdtempSync(join(tmpdir(), "aenv-memory-"));
  readonly #sandboxes = new Map<string, MemorySandbox>();
  readonly #work = new EngineWork();
  readonly #stored: MemorySnapshots;
  readonly #simulated: MemoryAbilities;
  #count = 0;

  constructor({ start, can = {}, maxSnapshots = Number.POSITIVE_INFINITY, layer }: MemoryEngineOptions) {
    const { egress = false, reportsRefused = false, changesEgress = false, snapshots = [], ...abilities } = can;
    const stored = new MemorySnapshots(maxSnapshots, layer);
    this.#stored = stored;
    this.#start = start;
    this.#simulated = can;
    this.can = { ...noAbilities, ...abilities };
    if (egress) this.egress = { reportsRefused, changes: changesEgress };
    if (snapshots.length > 0)
      this.snapshots = {
        fidelities: snapshots,
        remove: async (id) => stored.remove(id),
        export: async (id) => stored.export(id),
        import: (description, open) => stored.import(description, open),
      };
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    if (this.#sandboxes.has(spec.id)) throw existsAlready(spec.id);
    return this.#work.start(spec.id, signal, (either) => this.#open(spec, either));
  }

  async list(): Promise<readonly Sandbox[]> {
    return [...this.#sandboxes.values()].filter(({ hasExited }) => !hasExited);
  }

  /** How many snapshots are stored. */
  get snapshotCount(): number {
    return this.#stored.size;
  }

  /** Ends a sandbox as if its program had crashed. */
  async crash(id: string, reason: string): Promise<void> {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox === undefined) throw new PlatformError("sandbox.lost", `there is no sandbox '${id}'`);
    await sandbox.exit(reason);
  }

  /** Sandboxes in memory cannot outlive their engine, so they are destroyed. */
  async close(): Promise<void> {
    await this.#work.close();
    await Promise.all([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const path = join(this.#folder, String(++this.#count));
    const sandbox = new MemorySandbox(spec, path, this.#stored, this.#simulated, () => this.#sandboxes.delete(spec.id));
    const timedOut = () => startFailed(spec.id, `it did not answer within ${spec.startTimeoutMs} ms`);
    try {
      await startWithin({ id: spec.id, signal, timeoutMs: spec.startTimeoutMs, timedOut }, async (stop) => {
        const listener = await this.#start(spec, sandbox);
        const server = createServer((request, response) => void sandbox.untilThawed().then(() => listener(request, response)));
        if (listener.upgrade !== undefined) server.on("upgrade", listener.upgrade);
        await sandbox.listen(server);
        await probe(sandbox.address, stop);
      });
      this.#sandboxes.set(spec.id, sandbox);
      return sandbox;
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
  }
}
