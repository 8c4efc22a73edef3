import type { Trajectory } from "@aenv/contract";
import {
  type EpisodeSpec,
  type Limits,
  type PlayOptions,
  playAttempts,
  playEpisode,
  playOptions,
  withEarlierAttempts,
} from "@aenv/rollout";
import type { RolloutAgents } from "./agents.ts";
import { Capacities } from "./capacities.ts";
import type { HeldPool, InstancePools } from "./instance-pools.ts";
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
    const { request, environment, environmentDigest } = work;
    const { seconds } = request.limits;
    const deadlineMs = seconds === undefined ? DEFAULT_DEADLINE_MS : seconds * 1_000 + AROUND_MS;
    using pool = this.#options.pools.hold(
      { caller: callerOf(row, work), environment, environmentDigest, variables: request.variables },
      deadlineMs,
    );
    using held = this.#capacities.hold(row.owner);
    const { capacity } = held;
    const play = async (attempt: number) => {
      if (attempt > row.attempt && !(await beginAttempt(attempt))) return null;
      return this.#attempt(attempt, row, work, { pool, capacity, deadlineMs, cancel });
    };
    // Attempts that were lost with their server are not among the retries.
    const attempts = await playAttempts({ retries: request.retries + row.losses, cancel }, play, row.attempt);
    return attempts && withEarlierAttempts(attempts.last, attempts.earlier);
  }

  async #attempt(
    attempt: number,
    row: RolloutRow,
    work: RolloutWork,
    { pool, ...how }: { readonly pool: HeldPool } & Required<Pick<PlayOptions, "capacity" | "deadlineMs" | "cancel">>,
  ): Promise<Trajectory> {
    const { request } = work;
    const agent = this.#options.agents.agentOf(request, row.owner);
    const { model, task } = request;
    const { tool_calls: toolCalls, ...others } = request.limits;
    const limits: Limits = { ...others, toolCalls };
    const spec: EpisodeSpec = {
      id: row.id,
      run: row.run,
      attempt,
      task: { id: null, split: null, index: null, ...(task && !("inline" in task) && task) },
      group: request.group ?? null,
      seed: request.seed,
      metadata: request.metadata,
    };
    const options = playOptions({
      agent,
      limits,
      ...how,
      rewardArgs: request.reward_args,
      acquire: (episode, signal) => pool.acquire(episode, task, signal),
      provenance: {
        ...(work.configDigest !== undefined && { config_digest: work.configDigest }),
        model: model?.name ?? null,
        client_version: this.#options.version,
        ...(model && { sampling: model.sampling }),
      },
      date: this.#options.now,
    });
    const trajectory = await playEpisode(spec, options);
    // Without an instance the trajectory does not know what it would have been played on.
    const { environment, environmentDigest } = work;
    return { ...trajectory, provenance: { ...trajectory.provenance, environment, environment_digest: environmentDigest } };
  }
}
