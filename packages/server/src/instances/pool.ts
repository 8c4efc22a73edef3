import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { isPlatformError, PlatformError } from "@aenv/contract";
import type { Box, SandboxEngine } from "@aenv/sandbox";
import { askBox, type BoxClients, causeOf } from "./box-client.ts";
import { Demand, targetSize } from "./demand.ts";
import { Turns, type Urgency } from "./turns.ts";

export interface PoolOptions {
  readonly engine: SandboxEngine;
  readonly clients: BoxClients;
  /** The blank runner's command line. */
  readonly runner: readonly string[];
  /** What every runner finds in its environment. */
  readonly variables: Readonly<Record<string, string>>;
  readonly replica: string;
  readonly min: number;
  readonly max: number;
  /** Processes that start at the same time: as many as can without slowing each other down. */
  readonly startsAtOnce: number;
  /** What is taken is replaced so much later: whoever took it is about to use it, and a start would slow that down. */
  readonly refillAfterMs: number;
  readonly startTimeoutMs: number;
  readonly memoryMb: number;
  readonly now: () => number;
}

export interface ClaimSpec {
  /** The unpacked bundle. */
  readonly folder: string;
  readonly digest: string;
  /** What the process is to find in its environment before any of the author's code runs. */
  readonly variables: Readonly<Record<string, string>>;
  /** Its state is a value: it does not matter to it which process of the right code it gets. */
  readonly mayBePrepared: boolean;
  /** How many prepared ones its author wants to stand ready. */
  readonly warm: number;
}

const BLANK = "blank";

/**
 * Processes that wait before they are asked for. Blank ones take any bundle; prepared ones have taken one already.
 * Each shelf grows and shrinks with what is claimed from it.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #shelves = new Map<string, Shelf>();
  readonly #turns: Turns;
  readonly #stop = new AbortController();

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#turns = new Turns(options.startsAtOnce);
    this.#shelf(BLANK, null, options.min);
  }

  /** How many wait, by shelf: for metrics. */
  sizes(): ReadonlyMap<string, { readonly ready: number; readonly target: number }> {
    return new Map([...this.#shelves].map(([name, shelf]) => [name, { ready: shelf.ready.length, target: shelf.target }]));
  }

  /** Fills the shelves; answers when the first filling is done. */
  async warmUp(): Promise<void> {
    await Promise.all([...this.#shelves.values()].map((shelf) => this.#fill(shelf)));
  }

  /** A process with the bundle in it: a prepared one, else a blank one, else a new one. */
  async claim(spec: ClaimSpec, signal: AbortSignal): Promise<Box> {
    if (spec.mayBePrepared) {
      const shelf = this.#shelf(spec.digest, spec.folder, spec.warm);
      const prepared = this.#take(shelf);
      if (prepared !== null) return prepared;
    }
    const blank = this.#take(this.#shelf(BLANK, null, this.#options.min));
    try {
      if (blank !== null) return await this.#bind(blank, bundleOf(spec), signal);
    } catch (error) {
      // It may have died while it waited, which is no fault of the bundle's.
      if (!isPlatformError(error, "sandbox.lost")) throw error;
    }
    return this.#bind(await this.#start("now", signal), bundleOf(spec), signal);
  }

  /** Lets go of what waits in vain, and replaces what has died waiting. */
  async trim(): Promise<void> {
    await Promise.all([...this.#shelves.values()].map((shelf) => this.#trim(shelf)));
  }

  async close(): Promise<void> {
    this.#stop.abort(new PlatformError("server.draining", "the server is shutting down"));
    const shelves = [...this.#shelves.values()];
    this.#shelves.clear();
    await Promise.all(
      shelves.map(async (shelf) => {
        await shelf.filling?.catch(() => {});
        await empty(shelf);
      }),
    );
  }

  async #trim(shelf: Shelf): Promise<void> {
    shelf.target = this.#targetOf(shelf);
    const isOver = shelf.target === 0 && shelf.folder !== null && shelf.filling === null;
    if (isOver) this.#shelves.delete(shelf.name);
    await Promise.all(shelf.ready.splice(shelf.target).map((box) => box.destroy()));
    if (!isOver) this.#fill(shelf).catch(() => {});
  }

  #shelf(name: string, folder: string | null, min: number): Shelf {
    let shelf = this.#shelves.get(name);
    if (shelf === undefined) {
      shelf = { name, folder, min, ready: [], target: min, demand: new Demand(), filling: null };
      this.#shelves.set(name, shelf);
    }
    return shelf;
  }

  #take(shelf: Shelf): Box | null {
    shelf.demand.note(this.#options.now());
    shelf.target = this.#targetOf(shelf);
    const box = shelf.ready.shift() ?? null;
    // Not awaited: whoever claims one need not wait for the next.
    this.#fill(shelf, this.#options.refillAfterMs).catch(() => {});
    return box;
  }

  #targetOf(shelf: Shelf): number {
    return targetSize(shelf.demand.perSecond(this.#options.now()), shelf.min, this.#options.max);
  }

  #fill(shelf: Shelf, afterMs = 0): Promise<void> {
    shelf.filling ??= this.#fillIn(shelf, afterMs).finally(() => {
      shelf.filling = null;
    });
    return shelf.filling;
  }

  /** One at a time: starting many at once would slow down those who wait for an answer now. */
  async #fillIn(shelf: Shelf, afterMs: number): Promise<void> {
    if (afterMs > 0) await pause(afterMs, undefined, { signal: this.#stop.signal, ref: false });
    while (shelf.ready.length < shelf.target && !this.#stop.signal.aborted && this.#shelves.get(shelf.name) === shelf) {
      const box = await this.#start("ahead", this.#stop.signal);
      if (shelf.folder !== null) await this.#bind(box, { folder: shelf.folder, variables: {}, isAhead: true }, this.#stop.signal);
      shelf.ready.push(box);
      void box.exited.then(async () => {
        const at = shelf.ready.indexOf(box);
        if (at < 0) return;
        shelf.ready.splice(at, 1);
        await box.destroy().catch(() => {});
      });
    }
  }

  #start(urgency: Urgency, signal: AbortSignal): Promise<Box> {
    const { engine, runner, variables, replica, startTimeoutMs, memoryMb } = this.#options;
    const id = `runner-${randomBytes(10).toString("hex")}`;
    const spec = { id, command: runner, variables, labels: { replica, role: "runner" }, startTimeoutMs, memoryMb };
    return this.#turns.run(urgency, () => engine.create(spec, signal), signal);
  }

  async #bind(box: Box, body: BindRequest, signal: AbortSignal): Promise<Box> {
    try {
      const { clients, startTimeoutMs } = this.#options;
      await askBox(clients, box.id, box.address, {
        method: "POST",
        path: "/bind",
        body,
        timeoutMs: startTimeoutMs,
        signal,
      });
      return box;
    } catch (error) {
      const cause = await causeOf(box, error);
      await box.destroy();
      throw cause;
    }
  }
}

interface BindRequest extends Pick<ClaimSpec, "folder" | "variables"> {
  /** Nobody waits for it yet, so it may do more than it must. */
  readonly isAhead: boolean;
}

function bundleOf({ folder, variables }: ClaimSpec): BindRequest {
  return { folder, variables, isAhead: false };
}

interface Shelf {
  readonly name: string;
  /** The bundle of a shelf of prepared processes; null for blank ones. */
  readonly folder: string | null;
  readonly min: number;
  readonly ready: Box[];
  target: number;
  readonly demand: Demand;
  filling: Promise<void> | null;
}

async function empty(shelf: Shelf): Promise<void> {
  await Promise.all(shelf.ready.splice(0).map((box) => box.destroy()));
}
