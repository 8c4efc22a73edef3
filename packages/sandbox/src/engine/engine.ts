import type { KeyObject } from "node:crypto";
import type { Duplex, Readable } from "node:stream";
import type { CapabilitySet, EgressPolicy, Json, Limit, Resources, SandboxOptions } from "@aenv/contract";
import type { ServiceEngine } from "./service.ts";

/**
 * What the specification of a sandbox may contain, and what holds for each sandbox; callers check before they rely on it. What an engine and its
 * sandboxes do on request are capabilities of their own, such as `Sandbox.freezing`: an object with all methods, or none.
 */
export interface EngineAbilities {
  /** Runs container images, not only commands of this machine. */
  readonly images: boolean;
  /** A sandbox cannot see or harm other sandboxes and the machine. */
  readonly isolates: boolean;
  /** Sandboxes run on other machines than this process, so their number and their starts do not depend on its processors. */
  readonly elsewhere: boolean;
  /** A sandbox without `memoryMb` has a limit that the engine's own settings give it. */
  readonly ownMemory: boolean;
  /** Which limits a sandbox may have that others do not have, whatever the machine's storage is. */
  readonly ownLimits: readonly Limit[];
  /** Gives sandboxes the capabilities of Docker, where the operator allows it: `SandboxSpec.capabilities`. */
  readonly capabilities: boolean;
  /** Ends every descendant of a sandbox, also one that forked twice, left its session and cleared its environment. */
  readonly findsStrays: boolean;
  /** New sandboxes have `Sandbox.ports`. */
  readonly ports: boolean;
  /** New sandboxes have `Sandbox.freezing`. */
  readonly freezes: boolean;
  /** Mounts the storages that `mountPoints` name. */
  readonly mounts: boolean;
  /** Mounts folders of this machine: `SandboxSpec.mounts`. */
  readonly folders: boolean;
  /** Starts a sandbox with `initCommand`. */
  readonly initCommand: boolean;
  /** Runs sandboxes that are services for each other: `SandboxSpec.networks`, `SandboxSpec.volumes` and `SandboxSpec.program`. */
  readonly networks: boolean;
  /** Sandboxes have folders in memory and lines in `/etc/hosts` that their creator chooses: `SandboxSpec.tmpfs` and `SandboxSpec.hosts`. */
  readonly tmpfs: boolean;
  /** A sandbox can have a second container: `SandboxSpec.second`, and `Sandbox.second` is defined. */
  readonly seconds: boolean;
  /** What `SandboxSpec.runtime` may be; empty for engines without a choice. */
  readonly runtimes: readonly SandboxRuntime[];
}

/** An engine names only what it can do. */
export const noAbilities: EngineAbilities = {
  images: false,
  isolates: false,
  elsewhere: false,
  ownMemory: false,
  ownLimits: [],
  capabilities: false,
  findsStrays: false,
  ports: false,
  freezes: false,
  mounts: false,
  folders: false,
  initCommand: false,
  networks: false,
  tmpfs: false,
  seconds: false,
  runtimes: [],
};

/** How much of a sandbox a snapshot holds: its files, or also its processes with their memory and listening sockets. */
export type SnapshotFidelity = "files" | "memory";

/** Where a sandbox serves HTTP. */
export type SandboxAddress =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

/** `runc` shares the kernel of the machine; `runsc` (gVisor) has its own in user space. */
export type SandboxRuntime = "runc" | "runsc";

export type Listening =
  /** The engine appends to the command where to listen: `--socket PATH`, or `--host ADDRESS --port NUMBER`. */
  | { readonly kind: "appended" }
  /**
   * The program listens on this port. `{port}` and `{host}` in the command, and the variables PORT and HOST, tell it. It is ready when
   * `GET healthPath` succeeds, or, if that is null, when it answers `GET /health` with any status below 500.
   */
  | {
      readonly kind: "port";
      readonly port: number;
      readonly healthPath: string | null;
      /** An engine whose sandboxes share the ports of the machine may choose another port. */
      readonly isFlexible?: boolean;
    }
  /** There is no program that listens: the sandbox is only used for commands, files and ports. */
  | { readonly kind: "none" };

/** A folder of this machine that programs of a sandbox see. */
export interface FolderMount {
  readonly source: string;
  readonly target: string;
  readonly isReadOnly: boolean;
}

/** A folder that is empty at first and in memory, which counts as that of the sandbox. */
export interface MemoryFolder {
  readonly path: string;
  readonly sizeMb: number;
  /** Mode of the folder itself; for all users if absent. */
  readonly mode?: number | undefined;
  /** Whether programs can be started from it. */
  readonly isExecutable?: boolean | undefined;
}

/** A line of `/etc/hosts`. */
export interface HostEntry {
  readonly name: string;
  readonly address: string;
}

/**
 * A network of sandboxes with the same id, which find each other by their aliases. It leads nowhere else, not to the machine either:
 * that is up to `egress`. It exists as long as one of its sandboxes.
 */
export interface SandboxNetwork {
  readonly id: string;
  readonly aliases: readonly string[];
}

/**
 * A folder that the sandboxes with the same id share. At first it has the files that the image of its first sandbox has at the path. It
 * exists as long as one of its sandboxes.
 */
export interface SandboxVolume {
  readonly id: string;
  readonly path: string;
  readonly isReadOnly: boolean;
}

/** What a container would run. Whatever is not given is that of the image. */
export interface SandboxProgram {
  readonly entrypoint?: readonly string[] | undefined;
  readonly command?: readonly string[] | undefined;
  readonly cwd?: string | undefined;
  readonly user?: string | undefined;
}

/** Files of another image beside those of a sandbox. Both have the same network and the folder `/shared`. */
export interface SecondContainer {
  /** Without one, the engine's base. */
  readonly image?: string;
  readonly resources?: Resources;
}

/** What a sandbox is used for, for people and tools that look at the sandboxes of an engine. The platform reads nothing of it back. */
export interface SandboxSubject {
  /** The name of the environment. */
  readonly environment?: string;
  readonly version?: string;
  /** The owner of the instance. */
  readonly owner?: string;
  /** The instance that has the sandbox to itself. */
  readonly instance?: string;
  readonly ttl?: string;
  /** Those that the creator of the instance has chosen. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Which sandbox it is, and what it is used for. */
export interface SandboxIdentity {
  /** Chosen by the caller, so that it can be stored before the sandbox exists. */
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What runs in the sandbox, for engines that show it. */
  readonly subject?: SandboxSubject | undefined;
}

/** What runs in it. */
export interface SandboxRun {
  /** The program and its arguments; the engine appends where to listen, as `--socket PATH`. */
  readonly command: readonly string[];
  /** Arguments of an image's own program, instead of the image's; only for engines with `templates`, and without a command. */
  readonly arguments?: readonly string[] | undefined;
  /** A main program for a sandbox that listens to nothing. Only for engines with `networks`. */
  readonly program?: SandboxProgram | undefined;
  /** Where in `folder` the program is started. */
  readonly cwd?: string | undefined;
  /** All environment variables of the program; none is inherited from this process. */
  readonly variables: Readonly<Record<string, string>>;
  /** How the program is reached. The default is `appended`. */
  readonly listening?: Listening | undefined;
  /**
   * The program is the kit's runner. It refuses connections of programs in its own sandbox; an engine that connects from there appends the
   * digest of a key, `--caller-digest HEX`, and sends the key first. An engine that copies processes with their memory appends
   * `--kernel-random`, so that copies have different random numbers.
   */
  readonly isRunner?: boolean | undefined;
}

/** The files that it sees. */
export interface SandboxFiles {
  /** The image whose files the sandbox has; without one, the engine's base. Only for engines that run images. */
  readonly image?: string | undefined;
  /** A snapshot of this engine to start from, instead of the image. */
  readonly snapshot?: string | undefined;
  /** The snapshot is removed after this start and those beside it, so no sandbox is started from it ahead. */
  readonly isTemporarySnapshot?: boolean | undefined;
  /** A folder of this machine with the program's files. The sandbox has its own copy of it, in which the program is started. */
  readonly folder?: string | undefined;
  /** A folder that is added right after the start. An engine may copy it while the program starts. */
  readonly firstFolder?: string | undefined;
  /** Only for engines that mount folders. */
  readonly mounts?: readonly FolderMount[] | undefined;
  /** Only for engines with `networks`. */
  readonly volumes?: readonly SandboxVolume[] | undefined;
  /** Only for engines with `tmpfs`. */
  readonly tmpfs?: readonly MemoryFolder[] | undefined;
}

/** Whom its programs reach. */
export interface SandboxConnections {
  /** Without it, no outgoing connections, for engines that restrict them. */
  readonly egress?: EgressPolicy | undefined;
  /** Private networks. Only for engines with `networks`. */
  readonly networks?: readonly SandboxNetwork[] | undefined;
  /** Only for engines with `tmpfs`. */
  readonly hosts?: readonly HostEntry[] | undefined;
}

/** What isolates it, and what it may use. */
export interface SandboxBounds {
  /** Only for engines with more than one. */
  readonly runtime?: SandboxRuntime | undefined;
  /** The name of a template that the operator has for sandboxes; only for engines with templates. */
  readonly template?: string | undefined;
  /**
   * Only for engines that enforce limits; the engine process limits the memory. `processes` is at most the engine's own limit. `diskMb` and `shmMb`
   * are for engines with files of their own.
   */
  readonly resources?: Resources | undefined;
  /** What root of it may do; `minimal` if absent. Only for engines with `capabilities`, which refuse what their limit does not allow. */
  readonly capabilities?: CapabilitySet | undefined;
  /** Only for engines that support them. */
  readonly sandboxOptions?: SandboxOptions | undefined;
}

/** How it starts. */
export interface SandboxStart {
  readonly startTimeoutMs: number;
  /** The program may be started before anyone is connected to the sandbox: its command and variables are no secrets. Engines may ignore it. */
  readonly startsEarly?: boolean | undefined;
  /** It is not needed yet, so it must not take the room of one that is. */
  readonly isAhead?: boolean | undefined;
}

export interface SandboxSpec extends SandboxIdentity, SandboxRun, SandboxFiles, SandboxConnections, SandboxBounds, SandboxStart {
  /** Only for engines with `seconds`. */
  readonly second?: SecondContainer | undefined;
}

/** An outgoing connection that the policy of a sandbox did not allow. */
export interface RefusedConnection {
  readonly sandboxId: string;
  /** A host name or an address. */
  readonly host: string;
  /** Null if only the name was looked up. */
  readonly port: number | null;
}

/** A limit that a sandbox reached while it went on. */
export interface ReachedLimit {
  readonly sandboxId: string;
  readonly limit: "memory" | "processes" | "disk" | "files";
  /** A sentence: what happened, and the limit. */
  readonly reason: string;
}

export interface SandboxExit {
  readonly at: Date;
  /** A sentence: why the sandbox ended, as far as the system reports it. */
  readonly reason: string;
}

/** What a command in a sandbox has unless its caller says otherwise: those of the image, or of the sandbox's folder. */
export interface CommandDefaults {
  /** Also the folder of relative paths. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The user of the image, if it names one. */
  readonly user?: string;
}

/** Runs commands and accesses files: `connectInit` at this address, with the engine's key. */
export interface SandboxCommands {
  /** Where the init of the sandbox listens. */
  readonly address: SandboxAddress;
  /** Values for commands that do not choose their own. If absent, the init's. */
  readonly defaults?: CommandDefaults;
}

export interface SandboxPorts {
  /**
   * A new connection to a TCP port on which a process of this sandbox listens; rejects with `sandbox.port_closed` if none does.
   * A port of any other process (the server, another sandbox, another program of the machine) is never connected to.
   */
  connect(port: number, signal: AbortSignal): Promise<Duplex>;
}

export interface SandboxEgress {
  /** Changes where its programs may connect to; connections that the new policy does not allow are cut. */
  set(policy: EgressPolicy): Promise<void>;
}

export interface SandboxFreezing {
  /** Stops all processes until `thaw`. Both are idempotent. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** CPU time that the sandbox has used so far, which says whether it is idle. */
  cpuMs(): Promise<number>;
}

export interface SandboxSnapshots {
  /** What can be stored of this sandbox. */
  readonly fidelities: readonly SnapshotFidelity[];
  /** Stores the sandbox as it is now, and lets it go on, also if it was frozen. */
  take(fidelity: SnapshotFidelity, signal: AbortSignal): Promise<SandboxSnapshot>;
}

/** A sandbox that several servers see. */
export interface SharedSandbox {
  /** Shows what a sandbox that was started ahead is used for. */
  describe(subject: SandboxSubject): Promise<void>;
  /** This process looks after a sandbox of another server from now on. Idempotent. */
  takeOver(): void;
}

export interface Sandbox {
  readonly id: string;
  readonly address: SandboxAddress;
  /** Its second container, with commands and files of its own. It ends with the sandbox; `destroy` ends it before. */
  readonly second?: Sandbox;
  readonly labels: Readonly<Record<string, string>>;
  /** Null for engines whose sandboxes are not processes of this machine. */
  readonly pid: number | null;
  /** Resolves when the sandbox has ended, also if that was before the first read. */
  readonly exited: Promise<SandboxExit>;
  readonly commands?: SandboxCommands;
  readonly ports?: SandboxPorts;
  readonly egress?: SandboxEgress;
  readonly freezing?: SandboxFreezing;
  readonly snapshots?: SandboxSnapshots;
  readonly shared?: SharedSandbox;
  /** The last lines of what it printed, oldest first. */
  tail(lines: number): Promise<string[]>;
  /** Lines that it prints from now on, until the signal fires or the sandbox ends. */
  follow(signal: AbortSignal): AsyncIterable<string>;
  /** Makes a folder of this machine readable in the sandbox, and returns its path there. */
  addFolder(folder: string, signal: AbortSignal): Promise<string>;
  /** The variables that its program was started with, as far as the program has not changed them. None without a program. */
  programVariables?(): Promise<Readonly<Record<string, string>>>;
  /** Ends the sandbox and all its children, and removes what it left behind. Idempotent. */
  destroy(): Promise<void>;
}

export interface SandboxSnapshot {
  readonly id: string;
  readonly fidelity: SnapshotFidelity;
  readonly bytes: number;
  /** What a copy of memory loses: open connections to other machines, such as `10.0.0.7:443`. */
  readonly cut?: readonly string[];
}

/** A piece of an exported snapshot. Parts with the same name have the same content, in all snapshots of all engines. */
export interface SnapshotPart {
  readonly name: string;
}

/** Everything that another engine of the same kind needs to start sandboxes from a snapshot, but for the content of the parts. */
export interface SnapshotDescription {
  /** Read by engines only. */
  readonly facts: Json;
  readonly parts: readonly SnapshotPart[];
}

export interface ExportedSnapshot extends SnapshotDescription {
  /** The content of a part. The snapshot must not be removed until it is read. */
  open(part: SnapshotPart, signal: AbortSignal): Readable;
}

/** Restricts the outgoing connections of sandboxes by `SandboxSpec.egress`. */
export interface EngineEgress {
  /** Reports all connections that a policy did not allow, also those of sandboxes that may have none. */
  readonly reportsRefused: boolean;
  /** New sandboxes have `Sandbox.egress`. */
  readonly changes: boolean;
  /**
   * Why one sandbox cannot have these policies, one after the other from its start on, and what to do; null if it can. For engines where that
   * depends on more, such as the runtime.
   */
  problem?(policies: readonly EgressPolicy[], runtime: SandboxRuntime | undefined): string | null;
}

/** What `SandboxSnapshots.take` stored, and how it moves to other machines. */
export interface EngineSnapshots {
  /** What can be stored of some sandboxes, depending on their runtime. */
  readonly fidelities: readonly SnapshotFidelity[];
  /** Idempotent; sandboxes that were started from the snapshot keep running. */
  remove(id: string): Promise<void>;
  /** Describes a snapshot for other engines of this kind, also on other machines. */
  export(id: string): Promise<ExportedSnapshot>;
  /**
   * Stores a snapshot that another engine has exported. `open` is called for the parts that this engine does not have yet. Rejects with
   * `sandbox.unsupported` and the reason if sandboxes cannot be started from it here; then nothing of it is left.
   */
  import(description: SnapshotDescription, open: (part: SnapshotPart) => Promise<Readable>, signal: AbortSignal): Promise<SandboxSnapshot>;
}

/** Limits what an empty folder of this machine can hold, for engines that mount folders. */
export interface EngineDisks {
  /** Mounts a file system in the file `disk`. The folder keeps its content until `unmount`, also if this process ends. */
  mount(disk: string, folder: string, sizeMb: number): Promise<void>;
  /** Idempotent. The file stays. */
  unmount(folder: string): Promise<void>;
}

/** Creates sandboxes from templates of the operator: `SandboxSpec.template`. */
export interface EngineTemplates {
  /** The owners whose environments may name a template; `*` for all. */
  owners(name: string): readonly string[];
}

/** Creates sandboxes. Every engine passes the same conformance suite. */
export interface SandboxEngine {
  readonly name: string;
  readonly can: EngineAbilities;
  /** Names the place of its sandboxes if servers of several machines reach them; absent if only servers of this machine with the same home do. */
  readonly location?: string;
  /** Sandboxes have `Sandbox.commands`; the key proves to their inits that a connection comes from the platform. */
  readonly commands?: { readonly key: KeyObject };
  /** Why its sandboxes run no commands, and what to do, for an engine that can be opened so that they do. */
  readonly commandsHint?: string;
  readonly egress?: EngineEgress;
  readonly snapshots?: EngineSnapshots;
  readonly disks?: EngineDisks;
  readonly templates?: EngineTemplates;
  /** Keeps the replicas of services running by itself. */
  readonly services?: ServiceEngine;
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
