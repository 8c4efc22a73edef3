import type { SandboxEngine } from "@aenv/sandbox";
import type { Peers } from "../peers/peers.ts";
import { type Rounds, startRounds } from "../rounds.ts";
import type { SandboxClients } from "../sandboxes/client.ts";
import type { Hosts } from "../slots/hosts.ts";
import type { Pool } from "../slots/pool.ts";
import type { Slots } from "../slots/slots.ts";
import type { Instances } from "./instances.ts";
import type { Recovered, Recovery } from "./recovery.ts";

export interface MaintenanceOptions {
  readonly peers: Peers;
  readonly recovery: Recovery;
  readonly instances: Instances;
  readonly slots: Slots;
  readonly hosts: Hosts;
  readonly pool: Pool;
  readonly clients: SandboxClients;
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
export class Maintenance {
  readonly #options: MaintenanceOptions;
  #rounds: readonly Rounds[] = [];

  constructor(options: MaintenanceOptions) {
    this.#options = options;
  }

  /** Puts what an earlier process has left in order, and goes on looking after everything from then on. */
  async open(): Promise<Recovered> {
    const { peers, recovery, roundMs, onFailure } = this.#options;
    await peers.heartbeat();
    const recovered = await recovery.run();
    // Apart, so that nothing that takes its time makes this process seem dead.
    this.#rounds = [startRounds(() => peers.heartbeat(), roundMs, onFailure), startRounds(() => this.tidy(), roundMs, onFailure)];
    return recovered;
  }

  /** Each of it whatever became of the others. */
  async tidy(): Promise<void> {
    const { recovery, instances, slots, hosts, pool, clients, onFailure } = this.#options;
    const steps = [
      () => this.#takeOver(),
      () => recovery.settle(),
      () => instances.touchUsed(),
      () => slots.retry(),
      () => hosts.closeIdle(IDLE_HOST_MS),
      () => pool.trim(),
      () => clients.trim(IDLE_LINE_MS),
    ];
    for (const step of steps) await attempt(step, onFailure);
  }

  /**
   * Waits so long for starts, then hands what runs to another process at this place or, if there is none, ends it. While the store
   * cannot be reached nobody can take over, so the sandboxes of this process end with it; their rows are put right by the next start.
   */
  async close(graceMs: number): Promise<void> {
    const { peers, instances, slots, pool, hosts, onFailure } = this.#options;
    await this.#stop();
    await instances.close(graceMs);
    await attempt(() => pool.close(), onFailure);
    try {
      if (await peers.leave()) await hosts.closeIdle(0);
      else await this.#endAll();
    } catch (error) {
      onFailure(error);
      await attempt(() => this.#endSandboxes(new Set(peers.ids)), onFailure);
    }
    // What ends from now on is the business of whoever stays.
    slots.detach();
    await slots.settled();
  }

  /** Lets go of everything as a process does that dies: whoever comes next finds it. */
  async detach(): Promise<void> {
    await this.#stop();
    await this.#options.instances.close(0);
    await attempt(() => this.#options.pool.close(), this.#options.onFailure);
  }

  async #stop(): Promise<void> {
    await Promise.all(this.#rounds.map((one) => one.stop()));
  }

  async #takeOver(): Promise<void> {
    const { peers, recovery, onTakeOver } = this.#options;
    if ((await peers.claimDeadServers()).dead.length > 0) onTakeOver(await recovery.run());
  }

  async #endAll(): Promise<void> {
    const { peers, instances } = this.#options;
    // Whoever left a moment ago may have hoped that we would stay.
    const { dead, ids } = await peers.claimDeadServers();
    const all = new Set([...peers.ids, ...ids]);
    await instances.endAll(all, "the server was stopped");
    await this.#endSandboxes(all);
    for (const row of dead) await peers.markAdopted(row, new Set());
    await peers.remove();
  }

  /** Needs no store. */
  async #endSandboxes(names: ReadonlySet<string>): Promise<void> {
    const { slots, engine, onFailure } = this.#options;
    slots.detach();
    const sandboxes = (await engine.list()).filter((sandbox) => names.has(sandbox.labels.server ?? ""));
    await Promise.all(sandboxes.map((sandbox) => attempt(() => sandbox.destroy(), onFailure)));
  }
}

async function attempt(step: () => unknown, onFailure: (error: unknown) => void): Promise<void> {
  try {
    await step();
  } catch (error) {
    onFailure(error);
  }
}
