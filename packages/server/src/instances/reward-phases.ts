import type { EgressPolicy } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import type { InstanceRow } from "./row.ts";

interface Phase {
  /** Rewards that are being computed. */
  count: number;
  /** The last change of the policy; the next one waits for it. */
  changed: Promise<void>;
}

/** The part of an instance's row that decides about its rewards. */
export type RewardedRow = Pick<InstanceRow, "slot" | "egress">;

export interface RewardChange {
  readonly sandboxId: string;
  readonly agent: EgressPolicy;
  readonly reward: EgressPolicy;
}

/** The policies between which a sandbox changes for a reward; null if there is one for both. */
export function rewardChangeOf({ slot, egress }: RewardedRow): RewardChange | null {
  if (slot === null || egress?.reward === undefined) return null;
  return { sandboxId: slot.sandboxId, agent: egress.agent, reward: egress.reward };
}

export interface RewardPhasesOptions {
  readonly find: (sandboxId: string) => Promise<Sandbox | null>;
  readonly onFailure: (error: unknown) => void;
}

/** Gives a sandbox the policy of `rewardEgress` while its rewards are computed, and that of the agent again afterwards. */
export class RewardPhases {
  readonly #options: RewardPhasesOptions;
  readonly #phases = new Map<string, Phase>();

  constructor(options: RewardPhasesOptions) {
    this.#options = options;
  }

  /** Null if nothing changes for a reward of this instance. */
  enter(row: RewardedRow): Promise<() => void> | null {
    const change = rewardChangeOf(row);
    return change === null ? null : this.#enter(change);
  }

  /** Resolves when a sandbox whose rewards have ended has the policy of the agent again; null if there is nothing to wait for. */
  left(row: RewardedRow): Promise<void> | null {
    const change = rewardChangeOf(row);
    const phase = change === null ? undefined : this.#phases.get(change.sandboxId);
    // While a reward is computed, its policy is that of the whole sandbox.
    if (phase === undefined || phase.count > 0) return null;
    return phase.changed.catch(() => {});
  }

  async #enter({ sandboxId, agent, reward }: RewardChange): Promise<() => void> {
    const phase = this.#phases.get(sandboxId) ?? { count: 0, changed: Promise.resolve() };
    this.#phases.set(sandboxId, phase);
    phase.count += 1;
    if (phase.count === 1) this.#change(phase, sandboxId, reward);
    let hasLeft = false;
    const leave = () => {
      if (hasLeft) return;
      hasLeft = true;
      phase.count -= 1;
      if (phase.count > 0) return;
      const changed = this.#change(phase, sandboxId, agent);
      changed.catch(this.#options.onFailure).finally(() => {
        if (phase.count === 0 && phase.changed === changed) this.#phases.delete(sandboxId);
      });
    };
    try {
      await phase.changed;
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  #change(phase: Phase, sandboxId: string, policy: EgressPolicy): Promise<void> {
    phase.changed = phase.changed
      .catch(() => {})
      .then(async () => {
        const sandbox = await this.#options.find(sandboxId);
        await sandbox?.egress?.set(policy);
      });
    // The caller that waits for it gets the error.
    phase.changed.catch(() => {});
    return phase.changed;
  }
}
