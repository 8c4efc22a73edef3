import type { Socket } from "node:net";
import type { SandboxOptions } from "@aenv/contract";

/** What an engine can do beyond the interface; callers check before they rely on it. */
export interface EngineAbilities {
  /** Runs container images, not only commands of this machine. */
  readonly images: boolean;
  /** A sandbox cannot see or harm other sandboxes and the machine. */
  readonly isolates: boolean;
  /** Memory and time limits are enforced against intent, not only against accidents. */
  readonly limits: boolean;
  /** Ends every descendant of a sandbox, also one that forked twice, left its session and cleared its environment. */
  readonly findsStrays: boolean;
  /** Connects to ports on which programs inside a sandbox listen, and to no others: `Sandbox.connect` is defined. */
  readonly ports: boolean;
  /** Mounts the storages that `mountPoints` name. */
  readonly mounts: boolean;
  /** Starts a sandbox with `initCommand`. */
  readonly initCommand: boolean;
}

/** Where a sandbox serves HTTP. */
export type SandboxAddress =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

export interface SandboxSpec {
  /** Chosen by the caller, so that it can be stored before the sandbox exists. */
  readonly id: string;
  /** The program and its arguments; the engine appends where to listen, as `--socket PATH`. */
  readonly command: readonly string[];
  /** All environment variables of the program; none is inherited from this process. */
  readonly variables: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly memoryMb?: number;
  /** Total CPU time; the system kills a process that used more. */
  readonly cpuSeconds?: number;
  readonly startTimeoutMs: number;
  /** Only for engines that support them. */
  readonly sandboxOptions?: SandboxOptions;
}

export interface SandboxExit {
  readonly at: Date;
  /** A sentence: why the sandbox ended, as far as the system reports it. */
  readonly reason: string;
}

export interface Sandbox {
  readonly id: string;
  readonly address: SandboxAddress;
  readonly labels: Readonly<Record<string, string>>;
  /** Null for engines whose sandboxes are not processes of this machine. */
  readonly pid: number | null;
  /** Resolves when the sandbox has ended, also if that was before the first read. */
  readonly exited: Promise<SandboxExit>;
  /** The last lines of what it printed, oldest first. */
  tail(lines: number): Promise<string[]>;
  /** Lines that it prints from now on, until the signal fires or the sandbox ends. */
  follow(signal: AbortSignal): AsyncIterable<string>;
  /**
   * A new connection to a TCP port on which a process of this sandbox listens; rejects with `sandbox.port_closed` if none does.
   * A port of any other process (the server, another sandbox, another program of the machine) is never connected to.
   */
  connect?(port: number, signal: AbortSignal): Promise<Socket>;
  /** Ends the sandbox and all its children, and removes what it left behind. Idempotent. */
  destroy(): Promise<void>;
}

/** Creates sandboxes. Every engine passes the same conformance suite. */
export interface SandboxEngine {
  readonly name: string;
  readonly can: EngineAbilities;
  /**
   * Resolves when the sandbox answers `GET /health`, with any status: a blank runner answers 503.
   * Rejects with `sandbox.start_failed` and the reason.
   */
  create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>;
  /** The sandboxes that run, including those of an earlier server process on the same home. */
  list(): Promise<readonly Sandbox[]>;
  /** Releases all resources of the engine; sandboxes keep running. */
  close(): Promise<void>;
}
