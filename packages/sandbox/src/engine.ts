import type { Socket } from "node:net";
import type { SandboxOptions } from "@aenv/contract";

/** What an engine can do beyond the interface; callers ask before they rely on it. */
export interface EngineAbilities {
  /** Runs container images, not only commands of this machine. */
  readonly images: boolean;
  /** A sandbox cannot see or harm other sandboxes and the machine. */
  readonly isolates: boolean;
  /** Memory and time limits really hold. */
  readonly limits: boolean;
  /** Ends every process that came of a sandbox, also one that forked twice, left its session and cleaned its environment. */
  readonly findsStrays: boolean;
  /** Connects to ports on which programs inside a sandbox listen, and to no others: `Sandbox.connect` is there. */
  readonly ports: boolean;
  /** Mounts the storages that `mountPoints` name. */
  readonly mounts: boolean;
  /** Starts a sandbox with `initCommand`. */
  readonly initCommand: boolean;
}

/** Where a sandbox answers HTTP. */
export type SandboxAddress =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

export interface SandboxSpec {
  /** Chosen by the caller, so that it can be written down before the sandbox exists. */
  readonly id: string;
  /** The program; the engine adds how it is to listen, as `--socket PATH`. */
  readonly command: readonly string[];
  /** The whole environment of the program; nothing of ours is inherited. */
  readonly variables: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly memoryMb?: number;
  /** CPU time in all, after which the system ends the sandbox. */
  readonly cpuSeconds?: number;
  readonly startTimeoutMs: number;
  /** Given only to engines that can do it. */
  readonly sandboxOptions?: SandboxOptions;
}

export interface SandboxExit {
  readonly at: Date;
  /** A sentence: what ended the sandbox, as far as the system tells. */
  readonly reason: string;
}

export interface Sandbox {
  readonly id: string;
  readonly address: SandboxAddress;
  readonly labels: Readonly<Record<string, string>>;
  /** Null for engines whose sandboxes are not processes of this machine. */
  readonly pid: number | null;
  /** Resolves when the sandbox is no more, also if it was gone before anyone asked. */
  readonly exited: Promise<SandboxExit>;
  /** The last lines of what it printed, oldest first. */
  tail(lines: number): Promise<string[]>;
  /** What it prints from now on, line by line, until the signal fires or the sandbox is gone. */
  follow(signal: AbortSignal): AsyncIterable<string>;
  /**
   * A new connection to a TCP port on which a process of this sandbox listens; rejects with `sandbox.port_closed` if none does.
   * A port of anything else (the server, another sandbox, another program of the machine) is never connected to.
   */
  connect?(port: number, signal: AbortSignal): Promise<Socket>;
  /** Ends the sandbox and all its children, and removes what it left behind. Idempotent. */
  destroy(): Promise<void>;
}

/** Makes sandboxes. Every engine passes the same conformance suite. */
export interface SandboxEngine {
  readonly name: string;
  readonly can: EngineAbilities;
  /** Resolves when the sandbox answers `GET /health` or, for a blank runner, any HTTP at all; rejects with `sandbox.start_failed` and the reason. */
  create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>;
  /** What truly runs, also sandboxes of an earlier process of ours: the reaper's ground truth. */
  list(): Promise<readonly Sandbox[]>;
  /** Lets go of everything without ending sandboxes. */
  close(): Promise<void>;
}
