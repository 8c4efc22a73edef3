import type { KeyObject } from "node:crypto";
import { createConnection } from "node:net";
import type { Duplex } from "node:stream";
import { PlatformError } from "@aenv/contract";
import type {
  Sandbox,
  SandboxAddress,
  SandboxCommands,
  SandboxExit,
  SandboxPorts,
  SandboxSubject,
  SharedSandbox,
} from "../engine/engine.ts";
import { connectInit, type InitConnection } from "../init/connection.ts";
import { sendFolder } from "../init/folder.ts";
import { SharedConnection } from "../init/shared-connection.ts";
import { connectPort } from "../lifecycle/ports.ts";
import type { PodLog } from "./log.ts";
import { BUNDLES, INIT_PORT } from "./pod/pod.ts";
import type { PodState } from "./pod/state.ts";
import type { ReadyDefaults } from "./ready.ts";

export interface SandboxParts {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly podName: string;
  readonly uid: string;
  readonly ip: string;
  /** Default: that of the main container. */
  readonly initPort?: number;
  readonly second?: KubernetesSandbox;
  readonly state: PodState;
  readonly log: PodLog;
  readonly key: KeyObject;
  readonly takeOver: (sandbox: KubernetesSandbox) => void;
  readonly describe: (sandbox: KubernetesSandbox, subject: SandboxSubject) => Promise<void>;
  readonly destroy: (sandbox: KubernetesSandbox) => Promise<void>;
}

/** A program without a port has no address; nothing listens there. */
const NO_PORT = 9;

/** A pod, started by this process, by an earlier one or by another server. */
export class KubernetesSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: SandboxAddress;
  readonly second?: KubernetesSandbox;
  readonly pid = null;
  readonly exited: Promise<SandboxExit>;
  readonly podName: string;
  readonly uid: string;
  readonly state: PodState;
  commands?: SandboxCommands;
  readonly ports: SandboxPorts = { connect: (port, signal) => this.#connect(port, signal) };
  readonly shared: SharedSandbox = {
    describe: (subject) => this.#parts.describe(this, subject),
    takeOver: () => this.#parts.takeOver(this),
  };
  readonly #parts: SandboxParts;
  readonly #connection: SharedConnection;
  readonly #exiting = Promise.withResolvers<SandboxExit>();
  #exit: SandboxExit | null = null;
  #destroying: Promise<void> | undefined;
  #ahead: { readonly folder: string; readonly path: Promise<string> } | undefined;

  constructor(parts: SandboxParts) {
    const { ip, state, key, second, initPort = INIT_PORT } = parts;
    this.#parts = parts;
    this.id = parts.id;
    this.labels = parts.labels;
    this.podName = parts.podName;
    this.uid = parts.uid;
    this.state = state;
    this.address = { kind: "tcp", host: ip, port: state.port ?? NO_PORT };
    const init: SandboxAddress = { kind: "tcp", host: ip, port: initPort };
    if (second !== undefined) this.second = second;
    if (state.hasInit) this.commands = { address: init, defaults: { cwd: "/", env: {} } };
    this.#connection = new SharedConnection((signal) => connectInit(init, key, signal));
    this.exited = this.#exiting.promise;
  }

  get hasExited(): boolean {
    return this.#exit !== null;
  }

  get isDestroying(): boolean {
    return this.#destroying !== undefined;
  }

  /** Neither has it ended, nor is it being destroyed. */
  get isOpen(): boolean {
    return !this.hasExited && !this.isDestroying;
  }

  get ip(): string {
    return this.#parts.ip;
  }

  markExited(reason: string): void {
    if (this.#exit !== null) return;
    this.#exit = { at: new Date(), reason };
    this.release();
    this.second?.markExited(reason);
    this.#exiting.resolve(this.#exit);
  }

  useConnection(connection: InitConnection): void {
    this.#connection.use(connection);
  }

  useDefaults({ second, ...own }: ReadyDefaults): void {
    if (this.commands !== undefined) this.commands = { ...this.commands, defaults: own };
    if (second !== undefined) this.second?.useDefaults(second);
  }

  init(): Promise<InitConnection> {
    return this.#connection.get();
  }

  /** Closes what this process holds; the pod goes on. */
  release(): void {
    this.#connection.close();
    this.second?.release();
  }

  tail(lines: number): Promise<string[]> {
    return this.#parts.log.tail(lines);
  }

  follow(signal: AbortSignal): AsyncIterable<string> {
    return this.#parts.log.follow(signal, () => this.hasExited);
  }

  #connect(port: number, signal: AbortSignal): Promise<Duplex> {
    return connectPort(this, port, async () =>
      this.state.hasInit ? (await this.init()).connect(port) : connectDirectly(this.ip, port, signal),
    );
  }

  /** Begins to copy a folder that will be added. If that fails, it is sent when it is added. */
  sendAhead(folder: string, archive: Promise<Buffer | undefined>, signal: AbortSignal): void {
    const path = archive.then((read) => this.#send(folder, signal, read));
    path.catch(() => undefined);
    this.#ahead = { folder, path };
  }

  async addFolder(folder: string, signal: AbortSignal): Promise<string> {
    const ahead = this.#ahead;
    this.#ahead = undefined;
    const sent = ahead?.folder === folder ? await ahead.path.catch(() => null) : null;
    return sent ?? this.#send(folder, signal);
  }

  async #send(folder: string, signal: AbortSignal, archive?: Buffer): Promise<string> {
    if (!this.state.hasInit)
      throw new PlatformError(
        "sandbox.unsupported",
        `sandbox '${this.id}' runs the image's own program and takes no folder: name the program in runtime.command of config.json`,
      );
    const init = await this.init();
    const { bundles: parent = BUNDLES, cache } = this.state;
    const canKeep = init.hello.abilities.includes("unpack_cached");
    return sendFolder(init, folder, signal, { parent, isNamedByContent: true, cache: canKeep ? cache : undefined, archive });
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#parts.destroy(this).catch((error: unknown) => {
      this.#destroying = undefined;
      throw error;
    });
    return this.#destroying;
  }
}

function connectDirectly(host: string, port: number, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host, port, noDelay: true });
    const abort = () => socket.destroy(signal.reason instanceof Error ? signal.reason : new Error("cancelled"));
    signal.addEventListener("abort", abort);
    const end = () => signal.removeEventListener("abort", abort);
    socket.once("connect", () => {
      end();
      resolve(socket);
    });
    socket.once("error", (error) => {
      end();
      reject(error);
    });
    if (signal.aborted) abort();
  });
}
