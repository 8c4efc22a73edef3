import { randomInt } from "node:crypto";
import {
  type ChatMessage,
  type CreateSessionRequest,
  type EpisodeTask,
  instancePrefix,
  isPlatformError,
  type ListedTask,
  newKey,
  PlatformError,
  type Scored,
  type SessionAction,
  type SessionStart,
  type SessionStep,
  type Task,
  textOf,
} from "@aenv/contract";
import { Episode } from "@aenv/rollout";
import { Environment, SchedulerClient } from "@aenv/sdk";
import type { Caller } from "../access/access.ts";
import type { Hub } from "../hub/hub.ts";
import type { CallerAccess, Loopback } from "../loopback/loopback.ts";
import type { Collection } from "../stores/collection.ts";
import { expiryOf, hasExpired, lifeSeconds, maySee, needsRenewal, notFound, type SessionRow } from "./row.ts";
import type { ListedChoice, TaskList } from "./task-list.ts";
import type { Tasks } from "./tasks.ts";

export interface SessionsOptions {
  readonly rows: Collection<SessionRow>;
  readonly hub: Hub;
  readonly loopback: Loopback;
  readonly tasks: Tasks;
  readonly now: () => Date;
}

/** Longer than a tool should take; the environment's own timeouts are shorter. */
const CALL_TIMEOUT_MS = 10 * 60_000;

/** What this server keeps of a session that it has used. Another server can make it again from the row. */
interface OpenSession {
  readonly episode: Episode;
  readonly access: CallerAccess;
  readonly tokenId: string | null;
  readonly ending: AbortController;
  expiresAt: string;
}

/** Episodes that trainers play step by step. A session is a row and an instance; this server acts for the caller in all it does. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #open = new Map<string, OpenSession>();
  /** The last call of each session: calls of one session run one after the other. */
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Creates an instance and begins the episode. */
  async begin(request: CreateSessionRequest, caller: Caller, signal: AbortSignal): Promise<SessionStart & Pick<Episode, "abilities">> {
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
      ...(request.task && "id" in request.task && { task: request.task.id }),
    });
    try {
      await environment.initialize({ signal });
      const chosen = request.task ?? null;
      const isInline = chosen !== null && "inline" in chosen;
      const listed =
        chosen === null || isInline
          ? null
          : choose(await this.#options.tasks.of(version, variables, () => environment.tasks({ signal })), chosen);
      const ending = new AbortController();
      const episode = await Episode.begin(this.#episodeOptions(environment, isInline ? chosen.inline : (listed?.id ?? null), seed, ending));
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
      this.#open.set(id, { episode, access, tokenId: caller.tokenId, ending, expiresAt: row.expiresAt });
      const { messages } = episode.record;
      const start = {
        session: id,
        environment: ref,
        observation: observationOf(messages),
        messages: [...messages],
        tools: [...episode.tools],
        task,
        seed,
      };
      return { ...start, abilities: episode.abilities };
    } catch (error) {
      await environment.release();
      access[Symbol.dispose]();
      throw this.#explained(error);
    }
  }

  /** Calls a tool, or says something. A tool that fails is data; only failures of the platform throw. */
  step(id: string, action: SessionAction, caller: Caller): Promise<SessionStep> {
    return this.#inTurn(id, caller, async (row) => {
      if (row.isDone) return OVER;
      const open = await this.#opened(row, caller);
      return this.#step(row, open, action);
    });
  }

  /** The environment's score. It is computed once; asked again, it is the same. The instance ends with it. */
  score(id: string, text: string | undefined, caller: Caller): Promise<Scored> {
    return this.#inTurn(id, caller, async (row) => {
      if (row.outcome !== null) return row.outcome;
      const open = await this.#opened(row, caller);
      if (text !== undefined && !row.isDone) await this.#step(row, open, { text });
      const outcome = (await open.episode.score()) as Scored;
      // Another server may have scored it at the same time: the first score is the session's.
      const scored = await this.#options.rows.update(id, (latest) =>
        latest.outcome === null ? { ...latest, isDone: true, outcome } : latest,
      );
      // If this fails, the instance ends by its ttl.
      await this.#endInstance(row, caller).catch(() => {});
      return scored?.outcome ?? outcome;
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
    for (const [id, open] of this.#open) if (!this.#last.has(id) && hasExpired(open, now())) this.#forget(id);
  }

  /** Ends the calls of this server. Instances end or stay with the server's others. */
  close(): void {
    this.#closing.abort(new PlatformError("server.draining", "this server is shutting down; retry later, or at another server"));
    for (const id of [...this.#open.keys()]) this.#forget(id);
  }

  async #step(row: SessionRow, open: OpenSession, action: SessionAction): Promise<SessionStep> {
    const { episode } = open;
    const { messages, steps } = episode.record;
    const before = { messages: messages.length + 1, steps: steps.length };
    const message = messageOf(action, messages.length);
    episode.addMessage(message);
    const reason = await episode.take(message);
    if (reason !== null) await this.#options.rows.update(row.id, (latest) => (latest.isDone ? null : { ...latest, isDone: true }));
    const said = messages.slice(before.messages);
    const step = steps[before.steps];
    const observation = said.map(textOf).join("\n\n");
    return {
      observation,
      content: step?.result.content ?? (observation === "" ? [] : [{ type: "text", text: observation }]),
      ...(step?.result.structured_content !== undefined && { structured_content: step.result.structured_content }),
      is_error: step?.result.is_error ?? false,
      done: reason !== null,
      reward: step?.reward ?? null,
    };
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
    const open = this.#open.get(row.id);
    if (open !== undefined) open.expiresAt = expiresAt;
    return (await rows.update(row.id, (latest) => ({ ...latest, expiresAt }))) ?? row;
  }

  /** The episode on this server: the one in memory, or a new one on the same instance. */
  async #opened(row: SessionRow, caller: Caller): Promise<OpenSession> {
    const known = this.#open.get(row.id);
    if (known !== undefined && known.tokenId === caller.tokenId) return known;
    if (known !== undefined) this.#forget(row.id);
    const access = this.#options.loopback.as(caller);
    const ending = new AbortController();
    const environment = new Environment(`${row.environment.name}@${row.environment.version}`, {
      instanceUrl: access.dataUrl + instancePrefix(row.instanceId),
      apiKey: access.apiKey,
      ...callLimits,
      skipHealthCheck: true,
    });
    try {
      const episode = await Episode.resume(this.#episodeOptions(environment, row.task?.id ?? null, row.seed, ending), {
        task: row.task === null ? null : { id: row.task.id },
        isDone: row.isDone,
      });
      const open = { episode, access, tokenId: caller.tokenId, ending, expiresAt: row.expiresAt };
      this.#open.set(row.id, open);
      return open;
    } catch (error) {
      access[Symbol.dispose]();
      throw error;
    }
  }

  #episodeOptions(instance: Environment, task: EpisodeTask | null, seed: number, ending: AbortController) {
    const signal = AbortSignal.any([this.#closing.signal, ending.signal]);
    return { instance, task, seed, limits: {}, signal, recordsDigests: false, now: () => performance.now() };
  }

  async #endInstance({ id, instanceId, outcome }: SessionRow, caller: Caller): Promise<void> {
    this.#forget(id);
    if (outcome === null) await this.#asCaller(caller, (scheduler) => scheduler.deleteInstance(instanceId));
  }

  #forget(id: string): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    open.ending.abort(new PlatformError("request.cancelled", "the session was ended"));
    open.access[Symbol.dispose]();
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

const callLimits = { timeoutMs: CALL_TIMEOUT_MS, maxRetries: 0 } as const;

/** The answer to a step of an episode that is over. */
const OVER_TEXT = "not run: the episode is over";
const OVER: SessionStep = {
  observation: OVER_TEXT,
  content: [{ type: "text", text: OVER_TEXT }],
  is_error: true,
  done: true,
  reward: null,
};

/** An environment that does not list its tasks may know the id all the same. */
function choose(list: TaskList, choice: ListedChoice): ListedTask {
  if ("id" in choice && list.of().length === 0) return { id: choice.id, split: null, index: null, prompt: null };
  return list.get(choice);
}

/** The task that the environment made of one that it does not list; null without a task. */
function toListed(task: Task | null): ListedTask | null {
  return task === null ? null : { id: task.id, split: task.split ?? null, index: null, prompt: task.instruction ?? null };
}

function messageOf(action: SessionAction, at: number): ChatMessage {
  if ("text" in action) return { role: "assistant", content: action.text };
  const { name, arguments: args } = action.tool;
  return {
    role: "assistant",
    content: "",
    tool_calls: [{ id: `call_${at}`, type: "function", function: { name, arguments: JSON.stringify(args) } }],
  };
}

function observationOf(messages: readonly ChatMessage[]): string {
  const shown = messages.filter(({ role }) => role !== "system" && role !== "developer");
  return shown.map(textOf).join("\n\n");
}

function asLost(error: unknown): unknown {
  if (!isPlatformError(error, "instance.gone", "instance.not_found", "instance.failed")) return error;
  return new PlatformError("sandbox.lost", `the session's instance has ended: ${error.message}; begin a new session`, { cause: error });
}
