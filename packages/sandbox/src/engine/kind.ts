import type { ReachedLimit, RefusedConnection, SandboxEngine, SandboxRuntime } from "./engine.ts";

/**
 * What an engine says about itself before it is opened. It is a module of few imports in the engine's folder, because commands read it to
 * show a list; `open` loads the engine.
 */
export interface EngineKind<Settings> {
  /** What its sandboxes are, for the description of the setting `engine`. */
  readonly summary: string;
  /** What `aenv doctor` reports: one entry, or one for each runtime. */
  readonly variants: readonly EngineVariant[];
  /** Settings of a server inside of a command, such as `aenv rollout`; absent if such a server cannot use the engine. */
  readonly embeddedSettings?: Readonly<Record<string, unknown>>;
  open(settings: Settings, host: EngineHost): Promise<OpenEngine>;
  /** The images of the engine, without the engine; absent if it stores none on this machine. */
  openImages?(settings: Settings, access: ImageAccess): Promise<ImageStore>;
}

export interface EngineVariant {
  /** Only for a server with this setting `runtime`; with any if absent. */
  readonly runtime?: SandboxRuntime;
  readonly use: string;
  /** Names of the parts that `aenv doctor` tries and without which the engine does not work. */
  readonly needs: readonly string[];
}

/** An engine, and the command line of the blank runner in its sandboxes. */
export interface OpenEngine {
  readonly engine: SandboxEngine;
  readonly runner: readonly string[];
}

/** What the server gives an engine beside its settings. */
export interface EngineHost {
  /** Receives what the engine reports, such as the progress of pulls. */
  readonly log: (line: string) => void;
  /** Receives what the operator should change; `log` by default. */
  readonly warn?: (line: string) => void;
  readonly onRefused: (refused: RefusedConnection) => void;
  readonly onLimit: (reached: ReachedLimit) => void;
  /** Engines on other machines report the time from the request to a sandbox that answers. */
  readonly onReady?: (durationMs: number) => void;
  /** Environment variables of this process: programs that pull images get those for proxies and certificates. */
  readonly machineVariables?: Readonly<Record<string, string | undefined>> | undefined;
  /** The command line of the blank runner as a process of this machine. */
  readonly runner: readonly string[];
  /** The runner as one file of JavaScript, for sandboxes that do not see the files of this machine. */
  readonly runnerCode?: (() => Promise<string>) | undefined;
}

/** How a command reaches images. */
export interface ImageAccess {
  /** Variables for proxies, certificates and settings of skopeo. */
  readonly variables?: Readonly<Record<string, string | undefined>>;
  /** The socket of the daemon that `docker-daemon:NAME` means; that of the engine, or the usual one, if absent. */
  readonly daemonSocket?: string;
}

/** The images of an engine, without the engine. */
export interface ImageStore extends AsyncDisposable {
  /** Where the images are, for people. */
  readonly place: string;
  /** Whether sandboxes of the image start without a download. */
  has(image: string): Promise<boolean>;
  /** Downloads the image from its registry, if it is not there. */
  pull(image: string, signal: AbortSignal): Promise<void>;
  /** Takes the image from `docker-archive:PATH[:NAME]`, `oci:PATH[:NAME]` or `docker-daemon:NAME`. A registry is not asked. */
  load(image: string, source: string, signal: AbortSignal): Promise<void>;
  /**
   * Takes the image that `write` puts into an OCI layout under the name `image`. Layers that are there already have empty files in it: nobody
   * reads them, so nobody has to copy them.
   */
  receive?(image: string, write: (layout: string) => Promise<void>, signal: AbortSignal): Promise<void>;
}
