import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { isObject, type Json, PlatformError } from "@aenv/contract";
import type { ExportedSnapshot, SandboxSnapshot, SnapshotDescription, SnapshotFidelity, SnapshotPart } from "../engine/engine.ts";

/** What a sandbox in memory consists of. */
export interface MemoryContent {
  readonly files: Readonly<Record<string, string>>;
  /** What the program returned; null in a snapshot of files. */
  readonly memory: Json;
  /** Connections that copies do not have. */
  readonly cut?: readonly string[];
}

const LAYER = "layer";
const CONTENT = "content ";

/** The snapshots of one engine in memory. */
export class MemorySnapshots {
  readonly #stored = new Map<string, SandboxSnapshot & { readonly content: MemoryContent }>();

  readonly #max: number;
  readonly #layer: string | null;

  constructor(max: number, layer: string | null = null) {
    this.#max = max;
    this.#layer = layer;
  }

  add(fidelity: SnapshotFidelity, content: MemoryContent): SandboxSnapshot {
    if (this.#stored.size >= this.#max)
      throw new PlatformError("quota.exceeded", `the engine has ${this.#stored.size} snapshots and may have ${this.#max}; remove some`);
    const bytes = Buffer.byteLength(JSON.stringify(content));
    const snapshot = { id: randomBytes(12).toString("hex"), fidelity, bytes, ...(fidelity === "memory" && { cut: content.cut ?? [] }) };
    this.#stored.set(snapshot.id, { ...snapshot, content: structuredClone(content) });
    return snapshot;
  }

  get size(): number {
    return this.#stored.size;
  }

  contentOf(id: string): MemoryContent {
    return structuredClone(this.#get(id).content);
  }

  remove(id: string): void {
    this.#stored.delete(id);
  }

  export(id: string): ExportedSnapshot {
    const { fidelity, content } = this.#get(id);
    return {
      facts: { engine: "memory", fidelity },
      parts: [...(this.#layer === null ? [] : [{ name: LAYER }]), { name: `${CONTENT}${id}` }],
      open: ({ name }) => Readable.from([Buffer.from(name === LAYER ? (this.#layer ?? "") : JSON.stringify(content))]),
    };
  }

  async import({ facts, parts }: SnapshotDescription, open: (part: SnapshotPart) => Promise<Readable>): Promise<SandboxSnapshot> {
    const part = parts.find(({ name }) => name.startsWith(CONTENT));
    if (!isObject(facts) || facts.engine !== "memory" || part === undefined)
      throw new PlatformError("sandbox.unsupported", "the snapshot was taken by another engine; this server has the engine 'memory'");
    return this.add(facts.fidelity as SnapshotFidelity, JSON.parse(await text(await open(part))) as MemoryContent);
  }

  #get(id: string) {
    const found = this.#stored.get(id);
    if (found === undefined) throw new PlatformError("snapshot.not_found", `there is no snapshot '${id}' on this server`);
    return found;
  }
}
