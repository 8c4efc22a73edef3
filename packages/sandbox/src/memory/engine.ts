import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { Box, BoxSpec, EngineAbilities, SandboxEngine } from "../engine.ts";
import { knock } from "../probe.ts";
import { MemoryBox } from "./box.ts";

/** Plays the program of a box: what it returns answers the box's requests; what it throws is why the box did not start. */
export type MemoryProgram = (spec: BoxSpec, self: MemoryBox) => RequestListener | Promise<RequestListener>;

export interface MemoryEngineOptions {
  readonly start: MemoryProgram;
  /** Abilities that the program plays. */
  readonly can?: Partial<Pick<EngineAbilities, "mounts" | "initCommand">>;
}

/** Boxes that are functions of this process, for tests: the same life as elsewhere, and they can be made to crash. */
export class MemoryEngine implements SandboxEngine {
  readonly name = "memory";
  readonly can: EngineAbilities;
  readonly #start: MemoryProgram;
  readonly #folder = mkdtempSync(join(tmpdir(), "aenv-memory-"));
  /** Null while it is being made. */
  readonly #boxes = new Map<string, MemoryBox | null>();
  #made = 0;

  constructor({ start, can }: MemoryEngineOptions) {
    this.#start = start;
    this.can = {
      images: false,
      isolates: false,
      limits: false,
      findsStrays: false,
      ports: false,
      mounts: false,
      initCommand: false,
      ...can,
    };
  }

  async create(spec: BoxSpec, signal: AbortSignal): Promise<Box> {
    if (this.#boxes.has(spec.id)) throw new PlatformError("sandbox.exists", `a box '${spec.id}' is there already`);
    if (signal.aborted) throw cancelled(spec.id);
    const box = new MemoryBox(spec, join(this.#folder, String(++this.#made)), () => this.#boxes.delete(spec.id));
    this.#boxes.set(spec.id, null);
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), spec.startTimeoutMs);
    const cancel = () => stop.abort();
    signal.addEventListener("abort", cancel);
    try {
      const listener = await this.#start(spec, box);
      await box.listen(createServer(listener));
      await knock(box.address, stop.signal);
      this.#boxes.set(spec.id, box);
      return box;
    } catch (error) {
      await box.destroy();
      if (signal.aborted) throw cancelled(spec.id);
      const reason = stop.signal.aborted ? `it did not answer within ${spec.startTimeoutMs} ms` : messageOf(error);
      throw isPlatformError(error)
        ? error
        : new PlatformError("sandbox.start_failed", `box '${spec.id}' did not start: ${reason}`, { cause: error, details: { reason } });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", cancel);
    }
  }

  async list(): Promise<readonly Box[]> {
    return [...this.#boxes.values()].filter((box): box is MemoryBox => box !== null && !box.hasExited);
  }

  /** Ends a box as if its program had crashed. */
  async crash(id: string, reason: string): Promise<void> {
    const box = this.#boxes.get(id);
    if (box === undefined || box === null) throw new PlatformError("sandbox.lost", `there is no box '${id}'`);
    await box.exit(reason);
  }

  /** Memory is all there is, so what is let go of ends. */
  async close(): Promise<void> {
    await Promise.all([...this.#boxes.values()].map((box) => box?.destroy()));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function cancelled(id: string): PlatformError {
  return new PlatformError("request.cancelled", `box '${id}' is not made: the caller gave up`);
}
