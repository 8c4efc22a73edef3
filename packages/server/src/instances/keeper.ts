import type { SandboxEngine } from "@aenv/sandbox";
import { type Rounds, startRounds } from "../rounds.ts";
import type { BoxClients } from "./box-client.ts";
import type { Hosts } from "./hosts.ts";
import type { Instances } from "./instances.ts";
import type { Placement } from "./placement.ts";
import type { Pool } from "./pool.ts";
import type { Recovered, Recovery } from "./recovery.ts";
import type { Replicas } from "./replicas.ts";

export interface KeeperOptions {
  readonly replicas: Replicas;
  readonly recovery: Recovery;
  readonly instances: Instances;
  readonly placement: Placement;
  readonly hosts: Hosts;
  readonly pool: Pool;
  readonly clients: BoxClients;
  readonly engine: SandboxEngine;
  readonly roundMs: number;
  /** Told when what another process kept has been taken over. */
  readonly onTakeOver: (recovered: Recovered) => void;
  readonly onFailure: (error: unknown) => void;
}

/** An empty host waits this long for the next episode. */
const IDLE_HOST_MS = 60_000;
const IDLE_LINE_MS = 10 * 60_000;

/**
 * Looks after what runs: says that this process lives, takes over from those that do not, tidies up, and in the end hands
 * everything over or ends it.
 */
export class Keeper {
  readonly #options: KeeperOptions;
  #rounds: readonly Rounds[] = [];

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Puts what an earlier process has left in order, and goes on looking after everything from then on. */
  async open(): Promise<Recovered> {
    const { replicas, recovery, roundMs, onFailure } = this.#options;
    await replicas.beat();
    const recovered = await recovery.run();
    // Apart, so that nothing that takes its time makes this process seem dead.
    this.#rounds = [startRounds(() => replicas.beat(), roundMs, onFailure), startRounds(() => this.tidy(), roundMs, onFailure)];
    return recovered;
  }

  async tidy(): Promise<void> {
    const { replicas, recovery, instances, placement, hosts, pool, clients, onTakeOver } = this.#options;
    if ((await replicas.claimDead()).dead.length > 0) onTakeOver(await recovery.run());
    await recovery.settle();
    await instances.touchUsed();
    await placement.retry();
    await hosts.closeIdle(IDLE_HOST_MS);
    await pool.trim();
    clients.trim(IDLE_LINE_MS);
  }

  /** Waits so long for starts, then hands what runs to another process at this place or, if there is none, ends it. */
  async close(graceMs: number): Promise<void> {
    const { replicas, instances, pool, hosts, onFailure } = this.#options;
    await this.#stop();
    await instances.drain(graceMs);
    try {
      if (await replicas.leave()) await hosts.closeIdle(0);
      else await this.#endAll();
    } catch (error) {
      // The store is away: what runs is left as it is, and whoever comes next looks after it.
      onFailure(error);
    }
    await pool.close();
    instances.close();
  }

  /** Lets go of everything as a process does that dies: whoever comes next finds it. */
  async letGo(): Promise<void> {
    await this.#stop();
    await this.#options.instances.drain(0);
    await this.#options.pool.close();
    this.#options.instances.close();
  }

  async #stop(): Promise<void> {
    await Promise.all(this.#rounds.map((one) => one.stop()));
  }

  async #endAll(): Promise<void> {
    const { replicas, instances, engine } = this.#options;
    // Whoever left a moment ago may have hoped that we would stay.
    const { dead, names } = await replicas.claimDead();
    const all = new Set([...replicas.names, ...names]);
    await instances.endAll(all, "the server was stopped");
    const boxes = (await engine.list()).filter((box) => all.has(box.labels.replica ?? ""));
    await Promise.all(boxes.map((box) => box.destroy()));
    for (const row of dead) await replicas.inherit(row, new Set());
    await replicas.forget();
  }
}
