import { randomUUID } from "node:crypto";
import {
  type ChildGrant,
  type ChildState,
  childState,
  digestAnswer,
  type EpisodeChild,
  type EpisodeTask,
  episodeChildren,
  instanceRoutes,
  isObject,
  isPlatformError,
  PlatformError,
} from "@aenv/contract";
import type { Child, Children } from "../definition/children.ts";
import { dataOf } from "./answer.ts";
import type { ChildAnswer, ChildGrants, ChildHost, ChildRequest } from "./backend.ts";
import { ChildHandle } from "./handle.ts";
import { childSeed } from "./seed.ts";

/** What a context gives to the environment's code. */
export interface CallChildren {
  readonly children: Children;
}

/** The states of children in a snapshot, by their names. */
export type StoredChildren = Readonly<Record<string, ChildState>>;

interface Opened {
  readonly id: string;
  /** `name@version`. */
  readonly environment: string;
  readonly digest: string;
  task: EpisodeTask | null;
  seed: number;
}

export interface EpisodeChildrenOptions {
  readonly host: ChildHost | null;
  readonly grants: ChildGrants;
  readonly instanceId: string;
  /** The seed and the task of the parent. */
  readonly seed: number;
  readonly task: EpisodeTask | null;
}

/** The children of one episode, by name. */
export class EpisodeChildren {
  readonly #options: EpisodeChildrenOptions;
  readonly #episode = randomUUID();
  readonly #open = new Map<string, Promise<Opened>>();
  readonly #common: CallChildren;
  readonly #ending = new AbortController();
  instanceId: string;

  constructor(options: EpisodeChildrenOptions) {
    this.#options = options;
    this.instanceId = options.instanceId;
    this.#common = { children: this.#forCall(undefined) };
  }

  get grants(): ChildGrants {
    return this.#options.grants;
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Objects for one call, whose signal also ends what is done with them. */
  for(signal?: AbortSignal): CallChildren {
    return signal === undefined || this.#options.grants.length === 0 ? this.#common : { children: this.#forCall(signal) };
  }

  /** Opens what an episode begins with, all at once: new children, or those of a snapshot in the state that they had. */
  async begin(signal: AbortSignal, stored: StoredChildren = {}): Promise<void> {
    const wanted = this.#options.grants.filter(({ name, when }) => when === "start" || Object.hasOwn(stored, name));
    const opening = wanted.map(({ name }) => this.#opened(name, signal, Object.hasOwn(stored, name) ? stored[name] : undefined));
    // A child that fails late has to be closed too, so all are waited for.
    await Promise.allSettled(opening);
    await Promise.all(opening);
  }

  /** The states of all open children. A child whose state is no value fails with its name. */
  async store(signal: AbortSignal | undefined): Promise<StoredChildren> {
    const states = [...this.#open].map(async ([name, opening]): Promise<[string, ChildState]> => {
      const { task, seed } = await opening;
      const { method, path } = instanceRoutes.snapshot;
      const snapshot = dataOf(name, await this.#send(name, { method, path, body: {} }, signal));
      return [name, { task, seed, snapshot }];
    });
    return Object.fromEntries(await Promise.all(states));
  }

  /** The digests of the states of all open children, by name. */
  async digests(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const digests = [...this.#open.keys()].map(async (name): Promise<[string, string]> => {
      const { method, path } = instanceRoutes.digest;
      return [name, digestAnswer.parse(dataOf(name, await this.#send(name, { method, path }, signal))).digest];
    });
    return Object.fromEntries(await Promise.all(digests));
  }

  /** All open children, and those below them. */
  async list(signal: AbortSignal): Promise<readonly EpisodeChild[]> {
    const { method, path } = instanceRoutes.children;
    const lists = [...this.#open].map(async ([name, opening]): Promise<EpisodeChild[]> => {
      const { environment, digest, seed, task } = await opening;
      const own = { path: name, environment, digest, seed, task: typeof task === "string" ? task : null };
      const answer = await this.#send(name, { method, path }, signal);
      // A program has no such route, and no children.
      const below = answer.status === 200 ? episodeChildren.parse(dataOf(name, answer)) : [];
      return [own, ...below.map((one) => ({ ...one, path: `${name}/${one.path}` }))];
    });
    return (await Promise.all(lists)).flat();
  }

  /** Closes all children. Never fails: what is left ends with the instance. */
  async close(): Promise<void> {
    this.#ending.abort(new PlatformError("request.cancelled", "the episode has ended"));
    await Promise.all([...this.#open.keys()].map((name) => this.#close(name).catch(() => {})));
  }

  #forCall(signal: AbortSignal | undefined): Children {
    const { host, grants } = this.#options;
    const handle = (name: string): Child =>
      new ChildHandle(name, {
        send: (child, request) => this.#send(child, request, signal),
        noteReset: (child, episode) => void this.#noteReset(child, episode),
        close: (child) => this.#close(child),
      });
    return {
      isAvailable: host !== null && grants.length > 0,
      get: (name) => handle(this.#grantOf(name).name),
      list: () => grants.map(({ name }) => handle(name)),
    };
  }

  #grantOf(name: string): ChildGrant {
    const { grants, host } = this.#options;
    const found = grants.find((one) => one.name === name);
    if (found !== undefined) return found;
    if (host === null || grants.length === 0)
      throw new PlatformError(
        "instance.unsupported",
        `there is no child '${name}': the environment declares none in deployConfig.uses, or nothing here runs them`,
      );
    throw new PlatformError(
      "instance.unsupported",
      `there is no child '${name}'; deployConfig.uses of config.json has ${grants.map((one) => `'${one.name}'`).join(", ")}`,
    );
  }

  #requireHost(): ChildHost {
    const { host } = this.#options;
    if (host === null) throw new PlatformError("instance.unsupported", NO_HOST);
    return host;
  }

  #opened(name: string, signal: AbortSignal | undefined, stored?: ChildState): Promise<Opened> {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const opening = this.#start(name, signal, stored);
    this.#open.set(name, opening);
    opening.catch(() => {
      if (this.#open.get(name) === opening) this.#open.delete(name);
    });
    return opening;
  }

  async #start(name: string, signal: AbortSignal | undefined, stored: ChildState | undefined): Promise<Opened> {
    this.#ending.signal.throwIfAborted();
    const host = this.#requireHost();
    const given =
      stored === undefined ? { task: this.#taskFor(name), seed: childSeed(this.#options.seed, name), snapshot: undefined } : stored;
    const task = given.task as EpisodeTask | null;
    const stop = signal === undefined ? this.#ending.signal : AbortSignal.any([signal, this.#ending.signal]);
    const spec = { name, episode: this.#episode, seed: given.seed, task, snapshot: given.snapshot };
    try {
      const opened = await host.open(this.instanceId, spec, stop);
      return { ...opened, task, seed: given.seed };
    } catch (error) {
      throw named(name, error);
    }
  }

  #taskFor(name: string): EpisodeTask | null {
    const { task } = this.#grantOf(name);
    if (task === "none") return null;
    return task === "same" ? this.#options.task : task;
  }

  async #send(name: string, request: Omit<ChildRequest, "child">, signal: AbortSignal | undefined): Promise<ChildAnswer> {
    const { id } = await this.#opened(name, signal);
    try {
      return await this.#requireHost().request(this.instanceId, { ...request, child: id }, signal);
    } catch (error) {
      throw named(name, error);
    }
  }

  async #noteReset(name: string, { task, seed }: { readonly task?: EpisodeTask | null; readonly seed: number }): Promise<void> {
    const opened = await this.#open.get(name);
    if (opened === undefined) return;
    opened.seed = seed;
    if (task !== undefined) opened.task = task;
  }

  async #close(name: string): Promise<void> {
    const opening = this.#open.get(name);
    if (opening === undefined) return;
    this.#open.delete(name);
    const opened = await opening.catch(() => null);
    if (opened === null) return;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#requireHost().close(this.instanceId, opened.id);
      } catch (error) {
        // Another server takes the place of one that has died, and the child would live as long as its parent.
        if (attempt === CLOSE_ATTEMPTS || !isPlatformError(error, "sandbox.lost")) throw error;
      }
    }
  }
}

const CLOSE_ATTEMPTS = 5;
const NO_HOST = "this environment has no children here: it is run neither by a platform nor by 'aenv run'";

/** The states of children in what may be a snapshot. */
export function storedChildrenOf(snapshot: unknown): StoredChildren {
  if (!isObject(snapshot) || snapshot.children === undefined) return {};
  if (!isObject(snapshot.children)) throw damaged("its children are not an object");
  const states = Object.entries(snapshot.children).map(([name, value]): [string, ChildState] => {
    const state = childState.safeParse(value);
    if (!state.success) throw damaged(`the state of its child '${name}' is damaged`);
    return [name, state.data];
  });
  return Object.fromEntries(states);
}

function damaged(why: string): PlatformError {
  return new PlatformError("snapshot.invalid", `this snapshot cannot be restored: ${why}`);
}

/** The error with the name of the child. */
function named(name: string, error: unknown): unknown {
  if (!isPlatformError(error) || error.message.startsWith(`child '${name}'`)) return error;
  const { code, message, retryable, details } = error;
  return new PlatformError(code, `child '${name}': ${message}`, { cause: error, retryable, details });
}
