import { once } from "node:events";
import type { Server } from "node:http";
import { type EgressPolicy, type Json, PlatformError } from "@aenv/contract";
import type {
  Sandbox,
  SandboxAddress,
  SandboxEgress,
  SandboxExit,
  SandboxFreezing,
  SandboxSnapshot,
  SandboxSnapshots,
  SandboxSpec,
  SnapshotFidelity,
} from "../engine/engine.ts";
import { WakeSignal } from "../host/wake-signal.ts";
import type { MemoryAbilities } from "./abilities.ts";
import type { MemoryContent, MemorySnapshots } from "./snapshots.ts";

const MAX_LINES = 10_000;

export class MemorySandbox implements Sandbox {
  readonly id: string;
  readonly address: SandboxAddress;
  readonly labels: Readonly<Record<string, string>>;
  readonly pid = null;
  /** The policies that were set, the current one last. */
  readonly policies: EgressPolicy[] = [];
  readonly exited: Promise<SandboxExit>;
  /** CPU time that it seems to use in each millisecond. */
  cpuRate = 0;
  readonly #createdAt = performance.now();
  /** What its program stores as files. */
  readonly files = new Map<string, string>();
  /** Set by a program that can be stored with its memory; what it returns is `restored` of the copies. */
  saveMemory: (() => Promise<Json>) | undefined;
  /** Open connections to other machines, as the program simulates them. */
  connections: readonly string[] = [];
  /** The memory to continue with; null for a new program. */
  readonly restored: Json;
  readonly egress?: SandboxEgress;
  readonly freezing?: SandboxFreezing;
  readonly snapshots?: SandboxSnapshots;
  readonly #variables: Readonly<Record<string, string>>;
  readonly #stored: MemorySnapshots;
  readonly #path: string;
  readonly #onDestroyed: () => void;
  readonly #lines: string[] = [];
  readonly #followers = new Set<(line: string | null) => void>();
  #server: Server | undefined;
  #frozen: PromiseWithResolvers<void> | null = null;
  #hasExited = false;
  #isDestroyed = false;
  #resolveExit: (exit: SandboxExit) => void = () => undefined;

  constructor(spec: SandboxSpec, path: string, stored: MemorySnapshots, can: MemoryAbilities, onDestroyed: () => void) {
    this.id = spec.id;
    const content: MemoryContent = spec.snapshot === undefined ? { files: {}, memory: null } : stored.contentOf(spec.snapshot);
    for (const [name, text] of Object.entries(content.files)) this.files.set(name, text);
    this.restored = content.memory;
    this.#variables = spec.variables;
    this.#stored = stored;
    if (can.changesEgress) this.egress = { set: async (policy) => void this.policies.push(policy) };
    if (can.freezes) this.freezing = { freeze: () => this.#freeze(), thaw: () => this.#thaw(), cpuMs: async () => this.#cpuMs() };
    const { snapshots: fidelities = [] } = can;
    if (fidelities.length > 0) this.snapshots = { fidelities, take: (fidelity) => this.#take(fidelity) };
    this.labels = spec.labels;
    this.address = { kind: "unix", path };
    this.#path = path;
    this.#onDestroyed = onDestroyed;
    this.exited = new Promise((resolve) => {
      this.#resolveExit = resolve;
    });
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  async listen(server: Server): Promise<void> {
    this.#server = server.listen(this.#path);
    await once(server, "listening");
  }

  /** Requests are answered after `thaw`. */
  async #freeze(): Promise<void> {
    this.#frozen ??= Promise.withResolvers();
  }

  async #thaw(): Promise<void> {
    this.#frozen?.resolve();
    this.#frozen = null;
  }

  #cpuMs(): number {
    return this.cpuRate * (performance.now() - this.#createdAt);
  }

  get isFrozen(): boolean {
    return this.#frozen !== null;
  }

  async programVariables(): Promise<Readonly<Record<string, string>>> {
    return this.#variables;
  }

  async #take(fidelity: SnapshotFidelity): Promise<SandboxSnapshot> {
    if (this.#hasExited) throw new PlatformError("sandbox.lost", `sandbox '${this.id}' has ended`);
    if (fidelity === "memory" && this.saveMemory === undefined)
      throw new PlatformError("sandbox.unsupported", `the memory of sandbox '${this.id}' cannot be stored`);
    const memory = fidelity === "memory" ? ((await this.saveMemory?.()) ?? null) : null;
    return this.#stored.add(fidelity, { files: Object.fromEntries(this.files), memory, cut: this.connections });
  }

  /** Resolves when the sandbox is not frozen. */
  async untilThawed(): Promise<void> {
    await this.#frozen?.promise;
  }

  /** Adds a line to the output of the sandbox. */
  print(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
    for (const follower of this.#followers) follower(line);
  }

  async exit(reason: string): Promise<void> {
    if (this.#hasExited) return;
    this.#hasExited = true;
    this.#server?.close();
    this.#server?.closeAllConnections();
    this.#resolveExit({ at: new Date(), reason });
    for (const follower of this.#followers) follower(null);
  }

  async tail(lines: number): Promise<string[]> {
    return lines <= 0 ? [] : this.#lines.slice(-lines);
  }

  follow(signal: AbortSignal): AsyncIterable<string> {
    const wake = new WakeSignal();
    const waiting: string[] = [];
    const follower = (line: string | null) => {
      if (line !== null) waiting.push(line);
      wake.notify();
    };
    this.#followers.add(follower);
    signal.addEventListener("abort", () => wake.notify());
    return this.#follow(waiting, wake, signal, () => this.#followers.delete(follower));
  }

  async *#follow(waiting: string[], wake: WakeSignal, signal: AbortSignal, stop: () => void): AsyncGenerator<string> {
    try {
      while (!signal.aborted) {
        const line = waiting.shift();
        if (line !== undefined) yield line;
        else if (this.#hasExited) return;
        else await wake.wait();
      }
    } finally {
      stop();
    }
  }

  /** Its programs see the files of this machine. */
  addFolder(folder: string): Promise<string> {
    return Promise.resolve(folder);
  }

  async destroy(): Promise<void> {
    // Only once: by the second call, another sandbox may have its id.
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    await this.exit("the sandbox was destroyed");
    this.#lines.length = 0;
    this.#onDestroyed();
  }
}
