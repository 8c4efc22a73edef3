import { isPlatformError, messageOf, PlatformError, type StopReason, type Trajectory } from "@aenv/contract";
import { digestOf } from "../journal/digest.ts";
import { isProgram, type Player, type TurnAgent } from "../player/agent.ts";
import { AgentError, ModelError } from "../player/failure.ts";
import { Episode } from "./episode.ts";
import { rolesOf } from "./match.ts";
import { EpisodeDeadline, type EpisodeSpec, type Lease, type PlayOptions, playEpisode } from "./play.ts";

/** What the forks of a group have in common: an episode that was played to a step and waits there. */
interface Trunk {
  readonly lease: Lease;
  readonly episode: Episode;
  readonly player: Player;
  /** Set if the episode ended before the step; its forks have nothing to play then. */
  readonly reason: StopReason | null;
  readonly parent: NonNullable<Trajectory["parent"]>;
}

interface Fork extends Lease {
  readonly trunk: Trunk;
  readonly episode: Episode;
}

/**
 * Plays the samples of a group as forks: the first tool calls are made once, and each sample goes on from there on an instance of its
 * own. A group is played from one trunk unless that fails; then the samples that are left get a new one.
 */
export class ForkedGroups implements AsyncDisposable {
  readonly #options: PlayOptions;
  readonly #agent: TurnAgent;
  readonly #forkAt: number;
  /** Trunks by group. */
  readonly #trunks = new Map<string, Promise<Trunk>>();
  readonly #left = new Map<string, number>();

  constructor(options: PlayOptions, forkAt: number) {
    const { agent } = options;
    if (isProgram(agent)) {
      throw new PlatformError(
        "request.invalid",
        `the agent '${agent.name}' is a program, which cannot be forked; use one that plays by turns`,
      );
    }
    this.#options = options;
    this.#agent = agent;
    this.#forkAt = forkAt;
  }

  /** Plays one sample of a group. Never throws: what goes wrong is the episode's outcome. */
  async play(spec: EpisodeSpec): Promise<Trajectory> {
    const { rewardArgs } = this.#options;
    return playEpisode(spec, this.#options, {
      start: (signal) => this.#fork(spec, signal),
      reset: async ({ episode }: Fork) => episode,
      play: async (episode, { trunk: { reason, player } }: Fork) => reason ?? episode.play(player.copy(seedOf(spec))),
      score: (episode) => episode.score(rewardArgs),
    });
  }

  /** A sample has its last outcome. The trunk is not needed any more when all of its group have. */
  async done({ group }: Pick<EpisodeSpec, "group">): Promise<void> {
    if (group === null) return;
    const left = (this.#left.get(group.id) ?? group.size) - 1;
    this.#left.set(group.id, left);
    if (left > 0) return;
    this.#left.delete(group.id);
    await this.#drop(group.id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#trunks.keys()].map((group) => this.#drop(group)));
  }

  async #fork(spec: EpisodeSpec, signal: AbortSignal): Promise<Fork> {
    const group = groupOf(spec);
    const growing = this.#trunkOf(group, spec);
    const trunk = await growing;
    try {
      const [episode] = (await trunk.episode.fork(1, signal)) as [Episode];
      const { instance } = episode;
      return { ...trunk.lease, trunk, episode, instance, parent: trunk.parent, release: () => instance.release() };
    } catch (error) {
      // The instance may be gone. Other samples, and the next attempt of this one, get a new trunk, if they have none yet.
      if (!signal.aborted && this.#trunks.get(group) === growing) await this.#drop(group);
      throw error;
    }
  }

  #trunkOf(group: string, spec: EpisodeSpec): Promise<Trunk> {
    const known = this.#trunks.get(group);
    if (known !== undefined) return known;
    const trunk = this.#grow(group, spec);
    this.#trunks.set(group, trunk);
    // The samples that wait for it fail with it; their next attempt begins another.
    trunk.catch(() => this.#trunks.delete(group));
    return trunk;
  }

  async #grow(group: string, spec: EpisodeSpec): Promise<Trunk> {
    const { cancel, deadlineMs } = this.#options;
    using deadline = new EpisodeDeadline(deadlineMs, cancel);
    const { signal } = deadline;
    let lease: Lease | null = null;
    try {
      lease = await this.#options.acquire(spec, signal);
      const { instance } = lease;
      const { limits, recordsDigests, now } = this.#options;
      const task = lease.task?.id ?? spec.task.id;
      const roles = Object.keys(rolesOf(await instance.episode.abilities({ signal })));
      if (roles.length > 0) {
        throw new PlatformError(
          "request.invalid",
          `only an episode of one agent can be forked; the environment has the roles ${roles.join(", ")}`,
        );
      }
      const episode = await Episode.begin({ instance, task, seed: spec.seed, limits, signal, recordsDigests, now });
      const { player, reason } = await this.#playTrunk(episode, spec, signal).catch((error: unknown) => {
        throw ofAgent(error);
      });
      const { messages, steps, turns } = episode.record;
      // Named by its content: a trunk that was played again is another parent.
      const digest = digestOf({ messages, steps: steps.map(({ call, result }) => [call, result]) });
      const id = `${group}-trunk-${digest.slice("sha256:".length, "sha256:".length + 8)}`;
      return { lease, episode, player, reason, parent: { id, steps: steps.length, messages: messages.length, turns: turns.length } };
    } catch (error) {
      await lease?.release(false);
      throw deadline.isOver ? signal.reason : error;
    }
  }

  async #playTrunk(episode: Episode, { seed }: EpisodeSpec, signal: AbortSignal) {
    const player = await this.#agent.begin({
      task: { id: episode.task?.id ?? null, instruction: episode.task?.instruction ?? null },
      tools: episode.tools,
      seed,
      oracle: () => episode.instance.episode.oracle({ signal }),
    });
    return { player, reason: await episode.playTo(player, this.#forkAt) };
  }

  async #drop(group: string): Promise<void> {
    const trunk = this.#trunks.get(group);
    this.#trunks.delete(group);
    await trunk?.then(
      ({ lease }) => lease.release(false),
      () => {},
    );
  }
}

/** The trunk is a part of the start of its forks. What is thrown while it is played, and is no known failure, is the agent's. */
function ofAgent(error: unknown): unknown {
  if (isPlatformError(error) || error instanceof ModelError || error instanceof AgentError) return error;
  return new AgentError(messageOf(error), { cause: error });
}

function groupOf({ id, group }: EpisodeSpec): string {
  return group?.id ?? id;
}

/** Forks go on differently from each other, and the same in every run. */
function seedOf({ seed, group }: EpisodeSpec): number {
  return (seed + 1 + (group?.index ?? 0)) % 2 ** 31;
}
