import { randomInt } from "node:crypto";
import {
  type CreateSessionRequest,
  isPlatformError,
  type ListedTask,
  newKey,
  PlatformError,
  type ScoreSessionRequest,
  type SessionAction,
  type SessionScore,
  type SessionStart,
  type SessionStep,
  type Task,
} from "@aenv/contract";
import { beginEpisode, type Episode, Match, type Played } from "@aenv/rollout";
import { Environment, SchedulerClient } from "@aenv/sdk";
import type { Caller, Collection, Hub } from "@aenv/server/trainer-services";
import type { Loopback } from "../loopback/loopback.ts";
import { callLimits, episodeOptions, OpenEpisodes } from "./open-episodes.ts";
import { expiryOf, hasExpired, lifeSeconds, maySee, needsRenewal, notFound, type SessionRow } from "./row.ts";
import { OVER, observationOf, takeStep } from "./step.ts";
import type { ListedChoice, TaskList } from "./task-list.ts";
import type { Tasks } from "./tasks.ts";

export interface SessionsOptions {
  readonly rows: Collection<SessionRow>;
  readonly hub: Hub;
  readonly loopback: Loopback;
  readonly tasks: Tasks;
  readonly now: () => Date;
}

/** Episodes that trainers play step by step. A session is a row and an instance; this server acts for the caller in all it does. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #episodes: OpenEpisodes;
  /** The last call of each session: calls of one session run one after the other. */
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#episodes = new OpenEpisodes(options, this.#closing.signal);
  }

  /** Creates an instance and begins the episode. */
  async begin(request: CreateSessionRequest, caller: Caller, signal: AbortSignal): Promise<SessionStart & Pick<Played, "abilities">> {
    const { hub, loopback, rows, now } = this.#options;
    this.#closing.signal.throwIfAborted();
    const version = await hub.resolve(request.environment, caller);
    const id = newKey();
    const ref = `${version.name}@${version.version}`;
    const seed = request.seed ?? randomInt(2 ** 31);
    const variables = request.variables ?? {};
    const access = loopback.as(caller);
    const environment = new Environment(ref, {
      ...access,
      ...callLimits,
      ttl: `${lifeSeconds(request.ttl_seconds)}s`,
      labels: { session: id },
      seed,
      ...(request.variables !== undefined && { variables }),
      ...(request.models !== undefined && { models: request.models }),
      ...(request.task && "id" in request.task && { task: request.task.id }),
    });
    try {
      await environment.initialize({ signal });
      const chosen = request.task ?? null;
      const isInline = chosen !== null && "inline" in chosen;
      const listed =
        chosen === null || isInline
          ? null
          : choose(await this.#options.tasks.of(version, variables, () => environment.tasks({ signal }), signal), chosen);
      const ending = new AbortController();
      const played = isInline ? chosen.inline : (listed?.id ?? null);
      const episode = await beginEpisode(episodeOptions(environment, played, seed, AbortSignal.any([this.#closing.signal, ending.signal])));
      const task = listed ?? toListed(episode.task);
      const { instanceId } = await environment.getEnvInfo();
      const at = now();
      const row: SessionRow = {
        id,
        owner: caller.owner,
        environment: { name: version.name, version: version.version },
        instanceId,
        task,
        seed,
        isDone: false,
        outcome: null,
        ttlSeconds: request.ttl_seconds,
        expiresAt: expiryOf(request.ttl_seconds, at),
        createdAt: at.toISOString(),
      };
      signal.throwIfAborted();
      await rows.insert(id, row);
      this.#episodes.add(id, { episode, access, tokenId: caller.tokenId, ending, expiresAt: row.expiresAt });
      const start = { session: id, environment: ref, ...beginningOf(episode), task, seed };
      return { ...start, abilities: episode.abilities };
    } catch (error) {
      await environment.release();
      access[Symbol.dispose]();
      throw this.#explained(error);
    }
  }

  /** The tools of a session's episode, and what its environment defines. */
  describe(id: string, caller: Caller): Promise<Pick<Played, "tools" | "abilities">> {
    return this.#inTurn(id, caller, (row) => this.#episodes.get(row, caller));
  }

  /** Calls a tool, or says something. A tool that fails is data; only failures of the platform throw. */
  step(id: string, action: SessionAction, caller: Caller): Promise<SessionStep> {
    return this.#inTurn(id, caller, async (row) => {
      return row.isDone ? OVER : this.#step(row, await this.#episodes.get(row, caller), action);
    });
  }

  /** The environment's score. It is computed once; asked again, it is the same. The instance ends with it. */
  score(id: string, { text, arguments: args }: ScoreSessionRequest, caller: Caller): Promise<SessionScore> {
    return this.#inTurn(id, caller, async (row) => {
      if (row.outcome !== null) return scoreIn(row, row.outcome);
      const episode = await this.#episodes.get(row, caller);
      if (text !== undefined && !row.isDone) await this.#step(row, episode, { text });
      const score = await scoreOf(episode, args);
      // Another server may have scored it at the same time: the first score is the session's.
      const scored = await this.#options.rows.update(id, (latest) =>
        latest.outcome === null ? { ...latest, isDone: true, ...score } : latest,
      );
      // If this fails, the instance ends by its ttl.
      await this.#endInstance(row, caller).catch(() => {});
      return scored?.outcome ? scoreIn(scored, scored.outcome) : score;
    });
  }

  /** Ends the session and its instance, also in the middle of a step. Ending one that does not exist is no error. */
  async end(id: string, caller: Caller): Promise<void> {
    const row = (await this.#options.rows.find(id))?.value;
    if (row === undefined) return;
    if (!maySee(row, caller)) throw notFound(id);
    await this.#endInstance(row, caller);
    await this.#options.rows.remove(id);
  }

  /** Removes sessions that were idle for too long. Their instances end by themselves at the same time. */
  async sweep(): Promise<void> {
    const { rows, now } = this.#options;
    for await (const row of rows.each()) if (hasExpired(row.value, now())) await rows.remove(row.key, row.rev);
    this.#episodes.forgetExpired((id) => this.#last.has(id));
  }

  /** Ends the calls of this server. Instances end or stay with the server's others. */
  close(): void {
    this.#closing.abort(new PlatformError("server.draining", "this server is shutting down; retry later, or at another server"));
    this.#episodes.forgetAll();
  }

  async #step(row: SessionRow, episode: Played, action: SessionAction): Promise<SessionStep> {
    const step = await takeStep(episode, action);
    if (step.done) await this.#options.rows.update(row.id, (latest) => (latest.isDone ? null : { ...latest, isDone: true }));
    return step;
  }

  /** Runs one call of a session after those before it, with the session's current row. */
  async #inTurn<T>(id: string, caller: Caller, call: (row: SessionRow) => Promise<T>): Promise<T> {
    const turn = (this.#last.get(id) ?? Promise.resolve()).then(async () => {
      this.#closing.signal.throwIfAborted();
      const row = await this.#renewed(await this.#get(id, caller), caller);
      return call(row);
    });
    const settled = turn.then(
      () => {},
      () => {},
    );
    this.#last.set(id, settled);
    try {
      return await turn;
    } catch (error) {
      throw this.#explained(error);
    } finally {
      if (this.#last.get(id) === settled) this.#last.delete(id);
    }
  }

  async #get(id: string, caller: Caller): Promise<SessionRow> {
    const row = (await this.#options.rows.find(id))?.value;
    if (row === undefined || !maySee(row, caller) || hasExpired(row, this.#options.now())) throw notFound(id);
    return row;
  }

  /** Gives the session more time if it needs some. */
  async #renewed(row: SessionRow, caller: Caller): Promise<SessionRow> {
    const { rows, now } = this.#options;
    if (!needsRenewal(row, now())) return row;
    if (row.outcome === null)
      await this.#asCaller(caller, (scheduler) => scheduler.renewInstance(row.instanceId, `${lifeSeconds(row.ttlSeconds)}s`));
    const expiresAt = expiryOf(row.ttlSeconds, now());
    this.#episodes.renew(row.id, expiresAt);
    return (await rows.update(row.id, (latest) => ({ ...latest, expiresAt }))) ?? row;
  }

  async #endInstance({ id, instanceId, outcome }: SessionRow, caller: Caller): Promise<void> {
    this.#episodes.forget(id);
    // Also if the caller's token was revoked meanwhile: what it has begun must not go on until its ttl is over.
    if (outcome === null) await this.#asCaller({ ...caller, tokenId: null }, (scheduler) => scheduler.deleteInstance(instanceId));
  }

  async #asCaller<T>(caller: Caller, work: (scheduler: SchedulerClient) => Promise<T>): Promise<T> {
    using access = this.#options.loopback.as(caller);
    return await work(new SchedulerClient(access.controlUrl, { apiKey: access.apiKey, maxRetries: 0 }));
  }

  /** The error as the trainer reads it: an instance that has ended is a failure of the platform, not a wrong id. */
  #explained(error: unknown): unknown {
    if (this.#closing.signal.aborted) return this.#closing.signal.reason;
    return asLost(error);
  }
}

/** What the agents of an episode begin with. */
function beginningOf(episode: Played): Pick<SessionStart, "observation" | "messages" | "tools" | "roles" | "turn"> {
  const ofOne = ({ record: { messages }, tools }: Episode) => ({
    observation: observationOf(messages),
    messages: [...messages],
    tools: [...tools],
  });
  if (!(episode instanceof Match)) return ofOne(episode);
  const roles = Object.fromEntries(episode.roleNames.map((name) => [name, ofOne(episode.part(name))]));
  return { observation: "", messages: [], tools: [...episode.tools], roles, turn: [...episode.turn] };
}

async function scoreOf(episode: Played, args: ScoreSessionRequest["arguments"]): Promise<SessionScore> {
  const outcome = await episode.score(args);
  if (!(episode instanceof Match)) return { outcome };
  const roles = Object.entries(episode.outcomes(outcome)).map(([name, own]) => [name, { outcome: own }]);
  return { outcome, roles: Object.fromEntries(roles) };
}

function scoreIn({ roles }: SessionRow, outcome: SessionScore["outcome"]): SessionScore {
  return { outcome, ...(roles && { roles }) };
}

/** An environment that does not list its tasks may know the id all the same. */
function choose(list: TaskList, choice: ListedChoice): ListedTask {
  if ("id" in choice && list.of().length === 0) return { id: choice.id, split: null, index: null, prompt: null };
  return list.get(choice);
}

/** The task that the environment made of one that it does not list; null without a task. */
function toListed(task: Task | null): ListedTask | null {
  return task === null ? null : { id: task.id, split: task.split ?? null, index: null, prompt: task.instruction ?? null };
}

function asLost(error: unknown): unknown {
  if (!isPlatformError(error, "instance.gone", "instance.not_found", "instance.failed")) return error;
  return new PlatformError("sandbox.lost", `the session's instance has ended: ${error.message}; begin a new session`, { cause: error });
}
