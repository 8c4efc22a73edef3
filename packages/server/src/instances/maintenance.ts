import { type Rounds, startRounds } from "../lifecycle/rounds.ts";
import type { Peers } from "../peers/peers.ts";
import type { Slots } from "../slots/slots.ts";
import type { Instances } from "./instances.ts";
import type { Recovered, Recovery } from "./recovery.ts";

export interface MaintenanceOptions {
  readonly peers: Peers;
  readonly recovery: Recovery;
  readonly instances: Instances;
  readonly slots: Slots;
  readonly roundMs: number;
  /** Called after instances and sandboxes of a dead server were taken over. */
  readonly onTakeOver: (recovered: Recovered) => void;
  readonly onFailure: (error: unknown) => void;
}

/** Rounds between two checks of whether the parents of all children live. */
const COLLECT_EVERY = 20;

/** The background work of a server: heartbeats, taking over from dead servers, cleaning up, and the handover at shutdown. */
export class Maintenance {
  readonly #options: MaintenanceOptions;
  #rounds: readonly Rounds[] = [];
  #tidied = 0;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
  }

  /** Recovers what an earlier server has left, then starts the rounds. */
  async open(): Promise<Recovered> {
    const { peers, recovery, instances, roundMs, onFailure } = this.#options;
    await peers.heartbeat();
    const recovered = await recovery.run();
    await instances.collectChildren();
    // Heartbeats have rounds of their own, so that slow work does not make this server seem dead.
    this.#rounds = [startRounds(() => peers.heartbeat(), roundMs, onFailure), startRounds(() => this.tidy(), roundMs, onFailure)];
    return recovered;
  }

  /** One round. A step that fails does not stop the others. */
  async tidy(): Promise<void> {
    const { recovery, instances, slots, onFailure } = this.#options;
    const steps = [
      () => this.#takeOver(),
      () => recovery.settle(),
      () => instances.uses.touchAll(),
      () => this.#collectChildren(),
      ...slots.maintenance(),
    ];
    for (const step of steps) await attempt(step, onFailure);
  }

  /**
   * Waits up to `graceMs` for starts, then hands all instances over to another server at this location or, if there is none, ends them.
   * While the store is unavailable no server can take over, so the sandboxes are destroyed; the next start corrects their rows.
   */
  async close(graceMs: number): Promise<void> {
    const { peers, instances, slots, onFailure } = this.#options;
    await this.#stop();
    await instances.close(graceMs);
    await attempt(() => slots.closePool(), onFailure);
    try {
      if (await peers.leave()) await slots.closeIdleHosts(0);
      else await this.#endAll();
    } catch (error) {
      onFailure(error);
      await attempt(() => slots.destroyAll(new Set(peers.ids), onFailure), onFailure);
    }
    await slots.close();
  }

  /** Stops as a server that dies does: the next one recovers its instances. */
  async abandon(): Promise<void> {
    const { instances, slots, onFailure } = this.#options;
    await this.#stop();
    await instances.close(0);
    await attempt(() => slots.closePool(), onFailure);
  }

  async #collectChildren(): Promise<void> {
    if (++this.#tidied % COLLECT_EVERY === 0) await this.#options.instances.collectChildren();
  }

  async #stop(): Promise<void> {
    await Promise.all(this.#rounds.map((one) => one.stop()));
  }

  async #takeOver(): Promise<void> {
    const { peers, recovery, instances, onTakeOver } = this.#options;
    if ((await peers.claimDeadServers()).dead.length === 0) return;
    onTakeOver(await recovery.run());
    await instances.collectChildren();
  }

  async #endAll(): Promise<void> {
    const { peers, instances, slots, onFailure } = this.#options;
    // A server that has just shut down may have left its instances to this one.
    const { dead, ids } = await peers.claimDeadServers();
    const all = new Set([...peers.ids, ...ids]);
    await instances.handover.endAll(all, "the server was stopped");
    await slots.destroyAll(all, onFailure);
    for (const row of dead) await peers.markAdopted(row, new Set());
    await peers.remove();
  }
}

async function attempt(step: () => unknown, onFailure: (error: unknown) => void): Promise<void> {
  try {
    await step();
  } catch (error) {
    onFailure(error);
  }
}
