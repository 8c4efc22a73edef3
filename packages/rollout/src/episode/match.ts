import {
  type EpisodeAbilities,
  type EpisodeStatus,
  type ForfeitReason,
  isObject,
  isTruncated,
  type Outcome,
  PlatformError,
  type RoleDescription,
  type RoleDescriptions,
  type RoleRewards,
  type Step,
  type StopReason,
  type Task,
  type ToolDescriptor,
  type Trajectory,
  type TrajectoryRole,
  type Turn,
  type Unscored,
} from "@aenv/contract";
import type { AgentMessage, Player } from "../player/agent.ts";
import type { EpisodeInstance } from "../player/instance.ts";
import { LimitReached } from "../player/limits.ts";
import type { AssignedPlayer } from "../player/players.ts";
import { elapsedMs } from "./elapsed.ts";
import { Episode, type EpisodeOptions, type EpisodeTiming, resetInstance } from "./episode.ts";
import { usageOf } from "./usage.ts";

/** A tool of agents that play by themselves. An agent that plays by turns is asked when it is its turn, and is told then what it sees. */
const WAIT_TOOL = "wait_for_turn";
const YOUR_TURN = "It is your turn.";
const CALL_A_TOOL = "Nothing was done, because no tool was called. It is your turn: call one of your tools.";

/** One role of a match: its part of the episode, and who plays it. */
interface Role {
  readonly name: string;
  readonly description: RoleDescription;
  readonly episode: Episode;
  player: Player | null;
  /** Set when it does not play on. */
  stopReason: StopReason | null;
  forfeit: ForfeitReason | null;
  /** Calls in its turns that failed, or were not sent. */
  failedMoves: number;
  /** Messages without a call, of which the environment does not know. */
  silentMoves: number;
  /** Time in which its player may still think; undefined without a limit. */
  secondsLeft: number | undefined;
  /** Whether another role has acted since it last saw the state. */
  hasNews: boolean;
  /** How many of its steps and turns are in the timeline. */
  listed: { steps: number; turns: number };
}

/** A step or a turn of the timeline, by its position in what its role has. */
interface Place {
  readonly role: Role;
  readonly at: number;
}

/**
 * One episode that several agents play on one instance. Each role has a conversation, tools and limits of its own. Roles whose turn it is
 * at the same time are asked at the same time, and act in the order in which the environment declares them.
 *
 * @example
 * const match = await Match.begin({ instance, task: null, seed: 7, ... });
 * await match.assign(players);
 * const reason = await match.play();
 * const outcome = await match.score();
 */
export class Match {
  readonly task: Task | null;
  readonly abilities: EpisodeAbilities;
  readonly timing: EpisodeTiming;
  readonly wasReset: boolean;
  readonly #options: EpisodeOptions;
  readonly #roles: ReadonlyMap<string, Role>;
  #players: ReadonlyMap<string, AssignedPlayer> = new Map();
  readonly #steps: Place[] = [];
  readonly #turns: Place[] = [];
  #status: EpisodeStatus;
  #rewards: RoleRewards | null = null;

  private constructor(
    options: EpisodeOptions,
    known: Pick<Match, "task" | "abilities" | "timing" | "wasReset">,
    roles: readonly Role[],
    status: EpisodeStatus,
  ) {
    this.#options = options;
    this.task = known.task;
    this.abilities = known.abilities;
    this.timing = known.timing;
    this.wasReset = known.wasReset;
    this.#roles = new Map(roles.map((role) => [role.name, role]));
    this.#status = status;
  }

  /** Resets the instance to the task and asks it for the messages that each role begins with. */
  static async begin(options: EpisodeOptions): Promise<Match> {
    const { instance, signal, now } = options;
    const from = now();
    const abilities = await instance.episode.abilities({ signal });
    const reset = await resetInstance(options, abilities);
    const known = { task: reset?.task ?? null, abilities, wasReset: reset !== null };
    const match = await Match.#open(options, known, reset?.observation ?? null, from);
    match.timing.reset_ms = elapsedMs(from, now());
    return match;
  }

  /** A match that was begun before, by another process perhaps: the instance is not reset. What happened so far is not in its record. */
  static async resume(options: EpisodeOptions, task: Task | null): Promise<Match> {
    const { instance, signal, now } = options;
    const abilities = await instance.episode.abilities({ signal });
    return Match.#open(options, { task, abilities, wasReset: true }, null, now());
  }

  static async #open(
    options: EpisodeOptions,
    known: Pick<Match, "task" | "abilities" | "wasReset">,
    observation: unknown,
    startedAt: number,
  ): Promise<Match> {
    const { instance, signal, limits } = options;
    const roles: Role[] = [];
    for (const [name, description] of Object.entries(rolesOf(known.abilities))) {
      const episode = await Episode.join({ ...options, role: name }, { ...known, observation, startedAt, hides: [WAIT_TOOL] });
      const counters = { failedMoves: 0, silentMoves: 0, secondsLeft: limits.seconds, hasNews: false, listed: { steps: 0, turns: 0 } };
      roles.push({ name, description, episode, player: null, stopReason: null, forfeit: null, ...counters });
    }
    const timing = { reset_ms: 0, model_ms: 0, tools_ms: 0, score_ms: 0 };
    return new Match(options, { ...known, timing }, roles, await instance.episode.status({ signal }));
  }

  get instance(): EpisodeInstance {
    return this.#options.instance;
  }

  get rewardDigest(): string | null {
    return this.abilities.rewardDigest ?? null;
  }

  /** The tools of all roles together. */
  get tools(): readonly ToolDescriptor[] {
    const all = [...this.#roles.values()].flatMap(({ episode }) => episode.tools);
    return [...new Map(all.map((tool) => [tool.name, tool])).values()];
  }

  get roleNames(): readonly string[] {
    return [...this.#roles.keys()];
  }

  get isDone(): boolean {
    return this.#status.done;
  }

  /** The roles that may act now. */
  get turn(): readonly string[] {
    return this.#status.done ? [] : (this.#status.turn ?? this.roleNames);
  }

  /** A role's part of the episode: its tools and its conversation. */
  part(role: string): Episode {
    return this.#get(role).episode;
  }

  /** Gives the roles their players, before it is played. */
  async assign(players: ReadonlyMap<string, AssignedPlayer>): Promise<void> {
    const { signal } = this.#options;
    const task = { id: this.task?.id ?? null, instruction: this.task?.instruction ?? null };
    this.#players = players;
    for (const [name, { agent, seed }] of players) {
      const role = this.#get(name);
      const oracle = () => this.instance.episode.oracle({ signal, role: name });
      role.player = await agent.begin({ task, tools: role.episode.tools, seed, role: name, oracle });
    }
  }

  /** Plays until the environment says that the episode is done, a limit of the whole episode is reached, or nobody can act. */
  async play(): Promise<StopReason> {
    while (!this.isDone) {
      const acting = this.turn.map((name) => this.#get(name)).filter(({ stopReason }) => stopReason === null);
      // All have ended before one of them fails: none is left that uses the instance afterwards.
      const thoughts = await Promise.allSettled(acting.map((role) => this.#think(role)));
      const written = thoughts.map((thought) => {
        if (thought.status === "rejected") throw thought.reason;
        return thought.value;
      });
      for (const [at, role] of acting.entries()) {
        if (acting.some(({ episode }) => episode.isDone)) role.episode.end();
        await this.#act(role, written[at] as AgentMessage | StopReason);
      }
      const cut = acting.find(({ stopReason }) => stopReason !== null && isBudget(stopReason));
      if (cut !== undefined) return cut.stopReason as StopReason;
      await this.#look();
      if (acting.length === 0) break;
    }
    const stopped = [...this.#roles.values()].find(({ stopReason }) => stopReason !== null);
    return this.isDone ? "done" : (stopped?.stopReason ?? "done");
  }

  /** Records that a role has acted: which steps and turns it added, and whose turn it is now. */
  async acted(name: string): Promise<void> {
    this.#collect(this.#get(name));
    await this.#look();
  }

  /** What a role is told when its turn comes, which is then in its conversation; null if no other role has acted since it last saw the state. */
  async news(name: string): Promise<string | null> {
    const role = this.#get(name);
    if (!role.hasNews) return null;
    role.hasNews = false;
    const { signal } = this.#options;
    const result = await this.instance.callTool(WAIT_TOOL, { timeout_s: 0 }, { role: name, signal });
    const observation = isObject(result.structuredContent) ? result.structuredContent.observation : null;
    const isText = typeof observation === "string";
    const content = observation === null || observation === undefined ? YOUR_TURN : isText ? observation : JSON.stringify(observation);
    role.episode.addMessage({ role: "user", content });
    return content;
  }

  /** The environment's scores: that of the whole episode, and with it those of the roles. */
  async score(args: Readonly<Record<string, unknown>> = {}): Promise<Outcome> {
    const { signal, now } = this.#options;
    const from = now();
    const rewards = await this.instance.scoreRoles(args, { signal, timeoutMs: Number.POSITIVE_INFINITY });
    this.timing.score_ms = elapsedMs(from, now());
    this.#rewards = rewards;
    const { reward, components, weights, roles } = rewards;
    if (reward !== null) return { kind: "scored", reward, components, ...(weights && { weights }) };
    const missing = Object.values(roles).find(({ outcome }) => outcome.kind === "unscored")?.outcome;
    return missing ?? unscored("the environment gives no reward for the whole episode");
  }

  /** The outcomes of the roles; that of the episode for each of them if it has not been scored. */
  outcomes(whole: Outcome): Record<string, Outcome> {
    return Object.fromEntries(
      this.roleNames.map((name) => [
        name,
        this.#rewards === null
          ? whole
          : (this.#rewards.roles[name]?.outcome ?? unscored(`the environment gives the role '${name}' no reward`)),
      ]),
    );
  }

  get steps(): Step[] {
    return this.#steps.map(({ role, at }, index) => ({ ...(role.episode.record.steps[at] as Step), index }));
  }

  get turns(): Turn[] {
    return this.#turns.map(({ role, at }) => role.episode.record.turns[at] as Turn);
  }

  /** What each role saw and how the episode ended for it. */
  roles(outcome: Outcome, costOf: (turns: readonly Turn[]) => number | null): NonNullable<Trajectory["roles"]> {
    const outcomes = this.outcomes(outcome);
    return Object.fromEntries(
      [...this.#roles.values()].map(({ name, episode, stopReason, forfeit }): [string, TrajectoryRole] => {
        const { messages, offeredTools, conversations, turns } = episode.record;
        const player = this.#players.get(name);
        const reason = stopReason ?? (outcome.kind === "unscored" && !this.isDone ? "error" : "done");
        return [
          name,
          {
            player: player?.player ?? name,
            agent: player?.agent.name ?? "",
            agent_settings: player?.agent.settings ?? null,
            model: player?.model ?? null,
            trainable: player?.trainable ?? false,
            messages: [...messages],
            tools: [...episode.tools],
            ...(offeredTools && { offered_tools: [...offeredTools] }),
            ...(conversations.length > 0 && { conversations }),
            outcome: outcomes[name] as Outcome,
            stop_reason: reason,
            truncated: isTruncated(reason),
            ...(forfeit !== null && { forfeit }),
            usage: usageOf(turns),
            cost: (player?.costOf ?? costOf)(turns),
          },
        ];
      }),
    );
  }

  /** Adds up the times of the roles. Those that think at the same time count both. */
  sumTiming(): EpisodeTiming {
    const sum = (key: "model_ms" | "tools_ms") => [...this.#roles.values()].reduce((total, { episode }) => total + episode.timing[key], 0);
    return { ...this.timing, model_ms: sum("model_ms"), tools_ms: sum("tools_ms") };
  }

  #get(name: string): Role {
    const role = this.#roles.get(name);
    if (role !== undefined) return role;
    throw new PlatformError("request.invalid", `the environment has no role '${name}'; its roles are ${this.roleNames.join(", ")}`);
  }

  /** The next message of a role's player, or why there is none. */
  async #think(role: Role): Promise<AgentMessage | StopReason> {
    const { player, episode, description } = role;
    if (player === null) throw new TypeError(`the role '${role.name}' has no player`);
    const { now } = this.#options;
    await this.news(role.name);
    const ofTurn = description.turnTimeoutMs === undefined ? Number.POSITIVE_INFINITY : description.turnTimeoutMs / 1_000;
    const seconds = Math.min(ofTurn, role.secondsLeft ?? Number.POSITIVE_INFINITY);
    const from = now();
    const written = await episode.within<AgentMessage | StopReason>(
      null,
      () => episode.ask(endsWithSignal(player)),
      Number.isFinite(seconds) ? seconds : undefined,
    );
    if (role.secondsLeft !== undefined) role.secondsLeft = Math.max(0, role.secondsLeft - (now() - from) / 1_000);
    return written;
  }

  /** What follows from a role's message. */
  async #act(role: Role, written: AgentMessage | StopReason): Promise<void> {
    if (typeof written === "string") {
      this.#collect(role);
      if (isBudget(written)) role.stopReason = written;
      else await this.#giveUp(role, written, written === "time_limit" ? "time" : "left");
      return;
    }
    const before = role.episode.record.steps.length;
    const reason = await this.#take(role, written);
    this.#collect(role);
    if (reason !== null && isBudget(reason)) {
      role.stopReason = reason;
      return;
    }
    // The environment counts calls that fail too, but not those that are not sent. After a valid move it may be another's turn.
    const made = role.episode.record.steps.slice(before).filter(({ call }) => call.name !== WAIT_TOOL);
    const valid = made.findIndex(({ result }) => !result.is_error);
    role.failedMoves += valid < 0 ? made.length : valid;
    const isSilent = (written.message.tool_calls ?? []).length === 0 && (reason === "empty_reply" || !this.abilities.reply);
    if (isSilent) role.silentMoves++;
    const { maxInvalidMoves: most } = role.description;
    if (most === undefined) return isSilent ? this.#giveUp(role, reason ?? "done", "left") : undefined;
    if (role.failedMoves + role.silentMoves > most) await this.#giveUp(role, reason ?? "done", "invalid_moves");
    else if (isSilent) role.episode.addMessage({ role: "user", content: CALL_A_TOOL });
  }

  async #take({ episode }: Role, { message }: AgentMessage): Promise<StopReason | null> {
    try {
      return await episode.take(message);
    } catch (error) {
      if (error instanceof LimitReached) return error.stopReason;
      throw error;
    }
  }

  /** The role does not play on. What it loses by that is the environment's rule. */
  async #giveUp(role: Role, stopReason: StopReason, reason: ForfeitReason): Promise<void> {
    role.stopReason = stopReason;
    role.forfeit = reason;
    await this.instance.episode.forfeit(role.name, reason, { signal: this.#options.signal });
  }

  /** Adds what a role has done to the timeline. The others are told when it is their turn. */
  #collect(role: Role): void {
    const { steps, turns } = role.episode.record;
    for (; role.listed.turns < turns.length; role.listed.turns++) this.#turns.push({ role, at: role.listed.turns });
    for (; role.listed.steps < steps.length; role.listed.steps++) this.#steps.push({ role, at: role.listed.steps });
    for (const other of this.#roles.values()) if (other !== role) other.hasNews = true;
  }

  async #look(): Promise<void> {
    this.#status = await this.instance.episode.status({ signal: this.#options.signal });
  }
}

/** The roles that an environment declares; none if it is for one agent. */
export function rolesOf({ roles }: Pick<EpisodeAbilities, "roles">): RoleDescriptions {
  return roles ?? {};
}

/** The limits that cut an episode off for all roles, as they do for a single agent. */
function isBudget(reason: StopReason): boolean {
  return isTruncated(reason) && reason !== "time_limit";
}

function unscored(message: string): Unscored {
  return { kind: "unscored", cause: "environment", stage: "score", retryable: false, message };
}

/** A player whose time ends although it ignores the signal. */
function endsWithSignal(player: Player): Player {
  return {
    next: (messages, options) => {
      const { signal } = options;
      signal.throwIfAborted();
      return new Promise((resolve, reject) => {
        const end = () => reject(signal.reason);
        signal.addEventListener("abort", end, { once: true });
        player
          .next(messages, options)
          .then(resolve, reject)
          .finally(() => signal.removeEventListener("abort", end));
      });
    },
    copy: (seed) => player.copy(seed),
  };
}
