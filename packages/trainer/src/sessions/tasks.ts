import { createHash } from "node:crypto";
import { canonicalJson, isPlatformError, type Task } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import type { Caller, EnvironmentVersion, Hub } from "@aenv/server/trainer-services";
import type { Loopback } from "../loopback/loopback.ts";
import { TaskList } from "./task-list.ts";

export interface TasksOptions {
  readonly hub: Hub;
  readonly loopback: Loopback;
  readonly now: () => Date;
}

/** The list may depend on files of the server, so it is read again from time to time. */
const KEEP_MS = 5 * 60_000;
const MAX_LISTS = 100;
/** Characters of the prompts of all lists together. */
const MAX_CHARACTERS = 32 * 1024 ** 2;

interface Known {
  readonly list: Promise<TaskList>;
  readonly until: number;
  /** The signal of the request that reads it. */
  readonly signal: AbortSignal | undefined;
  /** Null until the list was read. */
  characters: number | null;
}

/** The tasks of published environments. A version never changes, so its list is kept for a while. */
export class Tasks {
  readonly #options: TasksOptions;
  readonly #lists = new Map<string, Known>();

  constructor(options: TasksOptions) {
    this.#options = options;
  }

  /** The tasks of `name@version`. A short-lived instance of the caller lists them if they are not known. */
  async list(ref: string, caller: Caller, signal?: AbortSignal): Promise<TaskList> {
    const { hub, loopback } = this.#options;
    const version = await hub.resolve(ref, caller);
    const load = async () => {
      using access = loopback.as(caller);
      await using environment = new Environment(`${version.name}@${version.version}`, { ...access, maxRetries: 0, ttl: "5m" });
      // Awaited here: the instance is released when this block ends.
      return await environment.tasks({ ...(signal !== undefined && { signal }) });
    };
    return this.of(version, {}, load, signal);
  }

  /** The tasks of a version with these variables; `load`, which the signal aborts, is called if they are not known. */
  of(
    version: Pick<EnvironmentVersion, "name" | "version" | "contentDigest">,
    variables: Readonly<Record<string, string>>,
    load: () => Promise<Task[]>,
    signal?: AbortSignal,
  ): Promise<TaskList> {
    const now = this.#options.now().getTime();
    const key = createHash("sha256")
      .update(canonicalJson([version.contentDigest, version.name, version.version, variables]))
      .digest("hex");
    const known = this.#lists.get(key);
    if (known !== undefined && known.until > now)
      return known.list.catch((error: unknown) => {
        // The client that it was read for has gone, and this one has not.
        if (known.signal?.aborted === true && signal?.aborted !== true) return this.of(version, variables, load, signal);
        throw error;
      });
    const list = load().then((tasks) => new TaskList(tasks), noTasks);
    this.#lists.delete(key);
    const kept: Known = { list, until: now + KEEP_MS, signal, characters: null };
    this.#lists.set(key, kept);
    list.then(
      ({ characters }) => {
        kept.characters = characters;
        this.#forgetOldest();
      },
      // A failure is not kept.
      () => this.#lists.get(key) === kept && this.#lists.delete(key),
    );
    this.#forgetOldest();
    return list;
  }

  #forgetOldest(): void {
    let characters = 0;
    for (const known of this.#lists.values()) characters += known.characters ?? 0;
    for (const [key, known] of this.#lists) {
      if (this.#lists.size <= MAX_LISTS && characters <= MAX_CHARACTERS) return;
      this.#lists.delete(key);
      characters -= known.characters ?? 0;
    }
  }
}

/** The original's images have no route for tasks. */
function noTasks(error: unknown): TaskList {
  if (isPlatformError(error, "instance.unsupported")) return new TaskList([]);
  throw error;
}
