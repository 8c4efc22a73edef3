import type { KeyObject } from "node:crypto";
import type { Duplex } from "node:stream";
import { type EgressPolicy, PlatformError } from "@aenv/contract";
import type {
  Sandbox,
  SandboxAddress,
  SandboxCommands,
  SandboxEgress,
  SandboxExit,
  SandboxFreezing,
  SandboxPorts,
} from "../engine/engine.ts";
import { LastLines } from "../host/last-lines.ts";
import { once } from "../host/once.ts";
import { connectInit, type InitConnection } from "../init/connection.ts";
import { sendFolder } from "../init/folder.ts";
import { SharedConnection } from "../init/shared-connection.ts";
import { type LimitUse, measuredUse } from "../lifecycle/limit-watch.ts";
import { connectPort } from "../lifecycle/ports.ts";
import { type DockerApi, isDockerError } from "./api.ts";
import { callerGreeting } from "./caller-key.ts";
import { Forwarder, isListening } from "./forwarder.ts";
import { LogFrames } from "./log-frames.ts";
import { type DockerRecord, initSocket, programSocket } from "./record.ts";

/** What its engine does for it. */
export interface SandboxActions {
  destroy(sandbox: DockerSandbox): Promise<void>;
  /** Absent if policies are set at the start only. */
  readonly setEgress?: (sandbox: DockerSandbox, policy: EgressPolicy) => Promise<void>;
}

/** A container, started by this process or adopted from an earlier one. */
export class DockerSandbox implements Sandbox {
  readonly id: string;
  readonly address: SandboxAddress;
  readonly ports: SandboxPorts = { connect: (port) => this.#connect(port) };
  readonly egress?: SandboxEgress;
  readonly freezing: SandboxFreezing = {
    freeze: () => this.#change("pause", "is already paused"),
    thaw: () => this.#change("unpause", "is not paused"),
    cpuMs: async () => {
      const stats = await this.#api.call("GET", `${this.path}/stats`, { query: { stream: "false", "one-shot": "true" } });
      const { cpu_usage: usage } = stats.cpu_stats as { cpu_usage: { total_usage: number } };
      return usage.total_usage / 1e6;
    },
  };
  readonly labels: Readonly<Record<string, string>>;
  readonly pid = null;
  readonly exited: Promise<SandboxExit>;
  record: DockerRecord;
  /** Name of the container. */
  readonly name: string;
  /** The path of the container in the API. */
  readonly path: string;
  readonly #api: DockerApi;
  readonly #actions: SandboxActions;
  readonly #connection: SharedConnection;
  readonly #init: SandboxAddress;
  readonly #key: KeyObject;
  #forwarder: Forwarder | undefined;
  #exit: SandboxExit | null = null;
  #exitReason: string | null = null;
  readonly #exiting = Promise.withResolvers<SandboxExit>();
  #lastChange: Promise<unknown> = Promise.resolve();
  // A change that is in progress may create what is to be removed.
  readonly destroy = once(() => this.#lastChange.then(() => this.#actions.destroy(this)));

  constructor(record: DockerRecord, name: string, api: DockerApi, key: KeyObject, actions: SandboxActions) {
    this.id = record.id;
    this.labels = record.labels;
    this.record = record;
    this.name = name;
    this.path = `/containers/${name}`;
    this.address = { kind: "unix", path: programSocket(record) };
    this.#init = { kind: "unix", path: initSocket(record) };
    this.exited = this.#exiting.promise;
    this.#api = api;
    this.#connection = new SharedConnection((signal) => connectInit(this.#init, key, signal));
    this.#key = key;
    this.#actions = actions;
    const { setEgress } = actions;
    if (setEgress !== undefined) this.egress = { set: (policy) => this.#afterLast(() => setEgress(this, policy)) };
  }

  get commands(): SandboxCommands {
    return { address: this.#init, defaults: this.record.commandDefaults };
  }

  get hasExited(): boolean {
    return this.#exit !== null;
  }

  /** Whether the program has accepted a connection. */
  get isListening(): boolean {
    return this.#forwarder?.hasConnected === true;
  }

  /** The reason to report when the engine itself ends the sandbox. The first one counts. */
  setExitReason(reason: string): void {
    this.#exitReason ??= reason;
  }

  markExited(reason: string): void {
    if (this.#exit !== null) return;
    this.#exit = { at: new Date(), reason: this.#exitReason ?? reason };
    this.release();
    this.#exiting.resolve(this.#exit);
  }

  /** Uses a connection that exists already. */
  useConnection(connection: InitConnection): void {
    this.#connection.use(connection);
  }

  /** What it has used; null if its init does not answer now. */
  async limitUse(): Promise<LimitUse | null> {
    if (this.hasExited) return null;
    return measuredUse(await this.#connection.get());
  }

  /** Serves `address`, unless another server of this home does. */
  async forward(): Promise<void> {
    const { port, checksCallers = false } = this.record;
    if (port === null || this.hasExited || this.#forwarder !== undefined) return;
    const path = programSocket(this.record);
    const greeting = checksCallers ? callerGreeting(this.#key, this.id) : "";
    if (await isListening(path)) return;
    this.#forwarder ??= await Forwarder.open(path, async () => {
      const program = await (await this.#connection.get()).connect(port);
      if (greeting !== "") program.write(greeting);
      return program;
    });
  }

  /** Closes what this process holds; the container goes on. */
  release(): void {
    this.#forwarder?.close();
    this.#forwarder = undefined;
    this.#connection.close();
  }

  async tail(lines: number): Promise<string[]> {
    if (lines <= 0) return [];
    const last = new LastLines(lines);
    for await (const line of this.#log({ tail: String(lines) }, undefined)) last.push(line);
    return last.lines;
  }

  follow(signal: AbortSignal): AsyncIterable<string> {
    // The time is taken now, not when the first line is requested.
    return this.#log({ follow: "true", since: (Date.now() / 1_000).toFixed(3) }, signal);
  }

  #connect(port: number): Promise<Duplex> {
    return connectPort(this, port, async () => (await this.#connection.get()).connect(port));
  }

  async addFolder(folder: string, signal: AbortSignal): Promise<string> {
    return sendFolder(await this.#connection.get(), folder, signal);
  }

  /** One change after the other. */
  #afterLast(change: () => Promise<void>): Promise<void> {
    const changing = this.#lastChange.then(change);
    this.#lastChange = changing.catch(() => undefined);
    return changing;
  }

  async #change(action: "pause" | "unpause", done: string): Promise<void> {
    try {
      await this.#api.call("POST", `${this.path}/${action}`);
    } catch (error) {
      // Docker answers 409 or 500 by version.
      if (isDockerError(error) && error.message.includes(done)) return;
      throw new PlatformError("sandbox.lost", `sandbox '${this.id}' cannot ${action}: ${(error as Error).message}`, { cause: error });
    }
  }

  async *#log(query: Readonly<Record<string, string>>, signal: AbortSignal | undefined): AsyncGenerator<string, void, undefined> {
    const frames = new LogFrames();
    try {
      const options = { query: { stdout: "true", stderr: "true", ...query }, headersTimeoutMs: 0, ...(signal !== undefined && { signal }) };
      for await (const data of await this.#api.stream("GET", `${this.path}/logs`, options)) yield* frames.push(data);
      yield* frames.finish();
    } catch (error) {
      // A removed container has no log.
      if (signal?.aborted !== true && !isDockerError(error, 404, 409)) throw error;
    }
  }
}
