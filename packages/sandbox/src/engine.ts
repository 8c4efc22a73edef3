import type { Socket } from "node:net";
import type { SandboxOptions } from "@aenv/contract";

/** What an engine can do beyond the interface; callers ask before they rely on it. */
export interface EngineAbilities {
  /** Runs container images, not only commands of this machine. */
  readonly images: boolean;
  /** A box cannot see or harm other boxes and the machine. */
  readonly isolates: boolean;
  /** Memory and time limits really hold. */
  readonly limits: boolean;
  /** Ends every process that came of a box, also one that forked twice, left its session and cleaned its environment. */
  readonly findsStrays: boolean;
  /** Connects to ports on which programs inside a sandbox listen, and to no others: `Box.connect` is there. */
  readonly ports: boolean;
  /** Mounts the storages that `mountPoints` name. */
  readonly mounts: boolean;
  /** Starts a sandbox with `initCommand`. */
  readonly initCommand: boolean;
}

/** Where a box answers HTTP. */
export type BoxAddress =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

export interface BoxSpec {
  /** Chosen by the caller, so that it can be written down before the box exists. */
  readonly id: string;
  /** The program; the engine adds how it is to listen, as `--socket PATH`. */
  readonly command: readonly string[];
  /** The whole environment of the program; nothing of ours is inherited. */
  readonly variables: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly memoryMb?: number;
  /** CPU time in all, after which the system ends the box. */
  readonly cpuSeconds?: number;
  readonly startTimeoutMs: number;
  /** Given only to engines that can do it. */
  readonly sandboxOptions?: SandboxOptions;
}

export interface BoxExit {
  readonly at: Date;
  /** A sentence: what ended the box, as far as the system tells. */
  readonly reason: string;
}

export interface Box {
  readonly id: string;
  readonly address: BoxAddress;
  readonly labels: Readonly<Record<string, string>>;
  /** Null for engines whose boxes are not processes of this machine. */
  readonly pid: number | null;
  /** Resolves when the box is no more, also if it was gone before anyone asked. */
  readonly exited: Promise<BoxExit>;
  /** The last lines of what it printed, oldest first. */
  tail(lines: number): Promise<string[]>;
  /** What it prints from now on, line by line, until the signal fires or the box is gone. */
  follow(signal: AbortSignal): AsyncIterable<string>;
  /**
   * A new connection to a TCP port on which a process of this sandbox listens; rejects with `sandbox.port_closed` if none does.
   * A port of anything else (the server, another sandbox, another program of the machine) is never connected to.
   */
  connect?(port: number, signal: AbortSignal): Promise<Socket>;
  /** Ends the box and all its children, and removes what it left behind. Idempotent. */
  destroy(): Promise<void>;
}

/** Makes boxes. Every engine passes the same conformance suite. */
export interface SandboxEngine {
  readonly name: string;
  readonly can: EngineAbilities;
  /** Resolves when the box answers `GET /health` or, for a blank runner, any HTTP at all; rejects with `sandbox.start_failed` and the reason. */
  create(spec: BoxSpec, signal: AbortSignal): Promise<Box>;
  /** What truly runs, also boxes of an earlier process of ours: the reaper's ground truth. */
  list(): Promise<readonly Box[]>;
  /** Lets go of everything without ending boxes. */
  close(): Promise<void>;
}
