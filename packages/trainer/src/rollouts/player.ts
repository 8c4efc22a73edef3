import type { Trajectory } from "@aenv/contract";
import { type EpisodeSpec, modelsOf, noopAgent, playAttempts, playEpisode, playOptions } from "@aenv/rollout";
import type { RolloutAgents } from "./agents.ts";
import { Capacities } from "./capacities.ts";
import type { InstancePools } from "./instance-pools.ts";
import { callerOf, type RolloutRow, type RolloutWork } from "./row.ts";

export interface PlayerOptions {
  readonly pools: Pick<InstancePools, "hold">;
  readonly agents: RolloutAgents;
  readonly version: string;
  readonly now: () => Date;
}

/** An episode without a time limit of its own is given up after this time. */
const DEFAULT_DEADLINE_MS = 30 * 60_000;
/** What start, reset and score may take beyond the agent's own time limit. */
const AROUND_MS = 10 * 60_000;

/** Plays one rollout with all its attempts. */
export class RolloutPlayer {
  readonly #options: PlayerOptions;
  readonly #capacities = new Capacities();

  constructor(options: PlayerOptions) {
    this.#options = options;
  }

  /** `beginAttempt` records the number of the next attempt; false if the rollout is no longer this server's. Returns null then. */
  async play(
    row: RolloutRow,
    work: RolloutWork,
    cancel: AbortSignal,
    beginAttempt: (attempt: number) => Promise<boolean>,
  ): Promise<Trajectory | null> {
    const { request, environment, environmentDigest, configDigest } = work;
    const { model, task } = request;
    const { tool_calls: toolCalls, ...limits } = request.limits;
    const { seconds } = limits;
    // Each role has this time of its own, one after the other at worst.
    const agentsCount = Math.max(1, Object.keys(request.players ?? {}).length);
    const deadlineMs = seconds === undefined ? DEFAULT_DEADLINE_MS : agentsCount * seconds * 1_000 + AROUND_MS;
    using pool = this.#options.pools.hold(
      { caller: callerOf(row, work), environment, environmentDigest, variables: request.variables, models: request.models },
      deadlineMs,
    );
    using held = this.#capacities.hold(row.owner);
    const spec: Omit<EpisodeSpec, "attempt"> = {
      id: row.id,
      run: row.run,
      task: { id: null, split: null, index: null, ...(task && !("inline" in task) && task) },
      group: request.group ?? null,
      seed: request.seed,
      metadata: request.metadata,
    };
    const { agents } = this.#options;
    const players = agents.playersOf(request, row.owner);
    const options = playOptions({
      agent: players === undefined ? agents.agentOf(request, row.owner) : noopAgent(),
      ...(players && { players }),
      limits: { ...limits, toolCalls },
      deadlineMs,
      rewardArgs: request.reward_args,
      acquire: (episode, signal) => pool.acquire(episode, task, signal),
      provenance: {
        environment,
        environment_digest: environmentDigest,
        ...(configDigest !== undefined && { config_digest: configDigest }),
        model: players === undefined ? (model?.name ?? null) : modelsOf(players),
        client_version: this.#options.version,
        ...(model && { sampling: model.sampling }),
      },
      date: this.#options.now,
      capacity: held.capacity,
      cancel,
    });
    // Attempts that were lost with their server are not among the retries.
    const policy = { retries: request.retries + row.losses, cancel };
    return playAttempts(
      policy,
      async (attempt) => {
        if (attempt > row.attempt && !(await beginAttempt(attempt))) return null;
        return playEpisode({ ...spec, attempt }, options);
      },
      row.attempt,
    );
  }
}
