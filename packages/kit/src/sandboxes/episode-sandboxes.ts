import { randomUUID } from "node:crypto";
import { openLimitsOf, type SandboxGrant, TASK_SANDBOX } from "@aenv/contract";
import type { OpenSandboxOptions, TaskSandbox, TaskSandboxes } from "../definition/sandbox.ts";
import type { PlatformLink } from "../link/link.ts";
import { NO_PLATFORM, NOT_DECLARED, unavailable } from "./faults.ts";
import { SandboxHandle } from "./handle.ts";
import type { ResolvedSandbox } from "./target.ts";

/** What a context gives to the environment's code. */
export interface CallSandboxes {
  readonly sandbox: TaskSandbox;
  readonly sandboxes: TaskSandboxes;
}

type Opened = Omit<ResolvedSandbox, "link" | "instanceId">;
type Wanted = { readonly purpose: "second" | "open" | "fresh" | "copy"; readonly of?: string; readonly snapshot?: string };
export type StoredCopies = NonNullable<SandboxGrant["copies"]>;

/** The sandboxes of one episode, by name. */
export class EpisodeSandboxes {
  readonly #link: PlatformLink | null;
  readonly #grant: SandboxGrant | null;
  readonly #opened = new Map<string, Opened>();
  /** Names of sandboxes that are being opened. */
  readonly #opening = new Set<string>();
  readonly #common: CallSandboxes;
  #isClosed = false;
  readonly #episode = randomUUID();
  instanceId: string;

  constructor(link: PlatformLink | null, grant: SandboxGrant | null, instanceId: string) {
    this.#link = link;
    this.#grant = grant;
    this.instanceId = instanceId;
    this.#common = this.#forCall(undefined);
  }

  get size(): number {
    return this.#opened.size + this.#opening.size;
  }

  /** Objects for one call, whose signal also ends what is done with them. */
  for(signal?: AbortSignal): CallSandboxes {
    return signal === undefined || this.#grant === null ? this.#common : this.#forCall(signal);
  }

  /** Opens what an episode begins with: copies of the sandboxes of a fork's parent, or the second container, if the instance has one. */
  async begin(signal: AbortSignal): Promise<void> {
    const { second = false, copies } = this.#grant ?? {};
    if (copies !== undefined)
      await Promise.all(copies.map(({ name, env, snapshot }) => this.#open(name, { purpose: "copy", snapshot }, { env }, signal)));
    else if (second) await this.#open(TASK_SANDBOX, { purpose: "second" }, {}, signal);
  }

  /** Stores the files of all open sandboxes, for a fork. If one fails, none is left. */
  async store(signal: AbortSignal | undefined): Promise<StoredCopies> {
    const stored: StoredCopies = [];
    try {
      for (const { id, name, env } of this.#opened.values()) {
        const answer = await this.#requireLink().call({
          path: "/snapshot",
          instanceId: this.instanceId,
          parameters: { sandbox: id },
          signal,
        });
        stored.push({ name, env: { ...env }, snapshot: (answer as { snapshot: string }).snapshot });
      }
      return stored;
    } catch (error) {
      await this.forget(stored);
      throw error;
    }
  }

  /** Never fails: the platform removes what is left. */
  async forget(copies: StoredCopies): Promise<void> {
    for (const { snapshot } of copies)
      await this.#link?.call({ path: "/snapshot/remove", instanceId: this.instanceId, parameters: { snapshot } }).catch(() => {});
  }

  /** Closes all sandboxes. Never fails: what is left ends with the instance. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#opened.keys()].map((name) => this.#close(name).catch(() => {})));
  }

  #forCall(signal: AbortSignal | undefined): CallSandboxes {
    const handle = (name: string) => this.#handle(name, signal);
    const find = (name: string) => (this.#opened.has(name) ? handle(name) : null);
    return {
      sandbox: handle(TASK_SANDBOX),
      sandboxes: {
        isAvailable: this.#link !== null && this.#grant !== null,
        open: async (options = {}) => {
          const name = options.name ?? this.#freeName(TASK_SANDBOX);
          await this.#open(name, { purpose: "open" }, options, anyOf(signal, options.signal));
          return handle(name);
        },
        fresh: async (of = TASK_SANDBOX, options = {}) => {
          const { id, env } = this.#get(of);
          const name = this.#freeName("fresh");
          await this.#open(
            name,
            { purpose: "fresh", of: id },
            { ...options, env: { ...env, ...options.env } },
            anyOf(signal, options.signal),
          );
          return handle(name);
        },
        get: (name) => {
          this.#get(name);
          return handle(name);
        },
        find,
        list: () => [...this.#opened.keys()].map(handle),
      },
    };
  }

  #handle(name: string, signal: AbortSignal | undefined): TaskSandbox {
    const target = {
      resolve: () => ({ link: this.#requireLink(), instanceId: this.instanceId, ...this.#get(name) }),
      signalWith: (own: AbortSignal | undefined) => anyOf(signal, own),
    };
    return new SandboxHandle(target, (one) => this.#close(one));
  }

  async #open(name: string, wanted: Wanted, options: OpenSandboxOptions, signal: AbortSignal | undefined): Promise<void> {
    const link = this.#requireLink();
    if (this.#opened.has(name) || this.#opening.has(name))
      throw new Error(`the episode has a sandbox named '${name}' already; close it first, or choose another name`);
    const { image, tmpfs, hosts, capabilities, egress, env = {} } = options;
    const { networks, volumes, program } = options;
    this.#opening.add(name);
    try {
      const parameters = {
        name,
        episode: this.#episode,
        ...wanted,
        ...(image !== undefined && { image }),
        ...openLimitsOf(options),
        ...(tmpfs !== undefined && {
          tmpfs: tmpfs.map(({ path, sizeMb, mode, isExecutable }) => ({ path, size_mb: sizeMb, mode, is_executable: isExecutable })),
        }),
        ...(hosts !== undefined && { hosts: hosts.map(({ name, address }) => ({ name, address })) }),
        ...(capabilities !== undefined && { capabilities }),
        ...(egress !== undefined && { egress }),
        ...(networks !== undefined && { networks: networks.map(({ name, aliases = [] }) => ({ name, aliases: [...aliases] })) }),
        ...(volumes !== undefined && {
          volumes: volumes.map(({ name, path, isReadOnly = false }) => ({ name, path, is_read_only: isReadOnly })),
        }),
        ...(program !== undefined && { program: { ...program, env } }),
      };
      const opened = await link.call({ path: "/open", instanceId: this.instanceId, parameters, signal });
      this.#opened.set(name, { ...(opened as { id: string; image: string | null }), name, env });
      if (!this.#isClosed) return;
      await this.#close(name);
      throw unavailable(`the episode ended while its sandbox '${name}' was opened`);
    } finally {
      this.#opening.delete(name);
    }
  }

  async #close(name: string): Promise<void> {
    const opened = this.#opened.get(name);
    if (opened === undefined) return;
    this.#opened.delete(name);
    await this.#requireLink().call({ path: "/close", instanceId: this.instanceId, parameters: { sandbox: opened.id } });
  }

  #get(name: string): Opened {
    const opened = this.#opened.get(name);
    if (opened !== undefined) return opened;
    this.#requireLink();
    const others = this.#opened.size === 0 ? "it has none" : `it has ${[...this.#opened.keys()].map((one) => `'${one}'`).join(", ")}`;
    throw unavailable(`the episode has no open sandbox named '${name}', ${others}; open it in setup with sandboxes.open`);
  }

  #requireLink(): PlatformLink {
    if (this.#link === null) throw unavailable(NO_PLATFORM);
    if (this.#grant === null) throw unavailable(NOT_DECLARED);
    return this.#link;
  }

  /** The name itself, if it is free, else with a number. */
  #freeName(base: string): string {
    let name = base;
    for (let at = 2; this.#opened.has(name) || this.#opening.has(name); at++) name = `${base}-${at}`;
    return name;
  }
}

function anyOf(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other;
  return AbortSignal.any([one, other]);
}
