import type {
  CapabilitySet,
  CommandEnding,
  CommandLine,
  CommandResult,
  EgressPolicy,
  ExactFile,
  FileContent,
  OpenLimits,
  SandboxFile,
} from "@aenv/contract";

export interface TaskCommandOptions {
  /** A relative path begins at the working directory of the image. */
  readonly cwd?: string;
  /** In addition to the variables of the image and of `open`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Name or number, also `name:group`; by default the user of the image. */
  readonly user?: string;
  /** The command is ended after this time; the server has a limit of its own. */
  readonly timeoutMs?: number;
  /** Aborting ends the command. The signal of the call ends it too. */
  readonly signal?: AbortSignal;
}

export interface TaskExecOptions extends TaskCommandOptions {
  readonly stdin?: string | Uint8Array;
  /** Most bytes of each output; of more, the beginning and the end are returned. 1 MiB if absent. */
  readonly maxOutputBytes?: number;
}

export interface TaskSpawnOptions extends TaskCommandOptions {
  /** Gives the command a terminal of this size; then all output is in `stdout`. */
  readonly terminal?: { readonly rows: number; readonly cols: number };
}

/** A command that runs in a sandbox, such as a shell that lives as long as the episode. It ends with `close`. */
export interface TaskProcess extends AsyncDisposable {
  readonly pid: number;
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves when the command has ended and its output was read or cancelled. */
  readonly exited: Promise<CommandEnding>;
  /** Sends a signal, such as SIGINT, to all processes of its group. */
  signal(name: string): Promise<void>;
  /** Ends the command with all processes of its group. */
  close(): Promise<void>;
}

interface Options {
  readonly signal?: AbortSignal;
}

/** The files of a sandbox. A relative path begins at the working directory of the image. */
export interface TaskFiles {
  read(path: string, options?: Options & { readonly offset?: number; readonly length?: number }): Promise<Uint8Array>;
  readText(path: string, options?: Options): Promise<string>;
  /** The bytes of a file while they arrive. */
  stream(path: string, options?: Options & { readonly offset?: number; readonly length?: number }): Promise<AsyncIterable<Uint8Array>>;
  /** Replaces a file at once, or appends to it. Folders above it are created. An existing file keeps its mode and owner. */
  write(
    path: string,
    content: FileContent,
    options?: Options & { readonly mode?: number; readonly append?: boolean; readonly user?: string },
  ): Promise<void>;
  /** The entries of a folder in the order of names; links are not followed. Throws if there are more than `limit`. */
  list(path?: string, options?: Options & { readonly recursive?: boolean; readonly limit?: number }): Promise<SandboxFile[]>;
  /** Describes a file or folder; of a link the link itself, unless `follow`. */
  stat(path: string, options?: Options & { readonly follow?: boolean }): Promise<SandboxFile>;
  /** Creates a folder and those above it. An existing one is no error. */
  mkdir(path: string, options?: Options & { readonly mode?: number }): Promise<void>;
  /** Removes a file or an empty folder, or with `recursive` all that is in it. */
  remove(path: string, options?: Options & { readonly recursive?: boolean }): Promise<void>;
  rename(path: string, to: string, options?: Options): Promise<void>;
  /** Unpacks a tar archive into a folder, which is created. */
  upload(path: string, archive: Uint8Array | AsyncIterable<Uint8Array>, options?: Options & { readonly user?: string }): Promise<void>;
  /** A folder or a file as a tar archive. */
  download(path: string, options?: Options): Promise<AsyncIterable<Uint8Array>>;
  /** The same as `list`, with what two sandboxes are compared by. */
  listExactly(path: string, options?: Options & { readonly recursive?: boolean; readonly limit?: number }): Promise<ExactFile[]>;
  /**
   * Each of these absolute paths by itself, in an archive for `import` of another sandbox: with owner, mode, times, attributes, access control
   * lists and holes. What is not there is left out.
   */
  export(paths: Iterable<string>, options?: Options): Promise<AsyncIterable<Uint8Array>>;
  /** Writes such an archive into the root. An entry for the device 0:0 removes what is at its path. */
  import(archive: AsyncIterable<Uint8Array>, options?: Options): Promise<void>;
}

/** A sandbox in which the environment's code runs commands for its task. It ends with the episode, or with `close`. */
export interface TaskSandbox extends AsyncDisposable {
  /** `task`, or the name with which it was opened. */
  readonly name: string;
  /** The image that it was started from; null for the platform's own files. */
  readonly image: string | null;
  readonly files: TaskFiles;
  /** Runs a command to its end. A command that fails gives an exit code; only one that could not be started throws. */
  exec(command: CommandLine, options?: TaskExecOptions): Promise<CommandResult>;
  /** Starts a command with streams: input while it runs, and a terminal if you want one. */
  spawn(command: CommandLine, options?: TaskSpawnOptions): Promise<TaskProcess>;
  /**
   * Changes what a running sandbox may connect to, within the policy of the environment; null is all of that policy. Connections that the
   * new policy does not allow end. An engine that cannot do it refuses.
   */
  setEgress(policy: EgressPolicy | null): Promise<void>;
  close(): Promise<void>;
}

/** Its limits are at most, and by default, those of `deployConfig.taskSandboxes`; its processes at most those that the engine gives to any sandbox. */
export interface OpenSandboxOptions extends OpenLimits {
  /** To find it later in the episode, with `sandboxes.get`. The first one of an episode is called `task`, others get a number. */
  readonly name?: string;
  /** Must be listed in `deployConfig.taskSandboxes.images`. By default the image of the instance's `datasource`, else the platform's own. */
  readonly image?: string;
  /** Folders that are empty at first and in memory, which counts as that of the sandbox. A fork does not copy what is in them. */
  readonly tmpfs?: readonly { readonly path: string; readonly sizeMb: number; readonly mode?: number; readonly isExecutable?: boolean }[];
  /** Further lines of `/etc/hosts`. Only with the engines oci and docker, as is `tmpfs`. */
  readonly hosts?: readonly { readonly name: string; readonly address: string }[];
  /** What root of it may do; at most, and by default, `deployConfig.taskSandboxes.capabilities`. */
  readonly capabilities?: CapabilitySet;
  /** May only narrow the policy of the environment. */
  readonly egress?: EgressPolicy;
  /** Variables of all commands that are run through this object, and of its `program`. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Private networks: the sandboxes of the episode that name the same one reach each other by their aliases. What else they reach is up
   * to `egress`. Only with the engine docker, as are `volumes` and `program`.
   */
  readonly networks?: readonly { readonly name: string; readonly aliases?: readonly string[] }[];
  /**
   * Folders that the sandboxes of the episode which name the same one share. A new one has the files that the image of its first sandbox has
   * at this path. It is removed with the last of its sandboxes.
   */
  readonly volumes?: readonly { readonly name: string; readonly path: string; readonly isReadOnly?: boolean }[];
  /** Runs a program as a container does. When it ends, the sandbox ends. */
  readonly program?: SandboxProgram;
  readonly signal?: AbortSignal;
}

/** What a container would run. Whatever is not given is that of the image. */
export interface SandboxProgram {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly cwd?: string;
  readonly user?: string;
}

/** The sandboxes of an episode. All of them end with it: at a reset, and with the instance. */
export interface TaskSandboxes {
  /** Whether this environment may open sandboxes here: it runs on a platform, and its config.json declares them. */
  readonly isAvailable: boolean;
  open(options?: OpenSandboxOptions): Promise<TaskSandbox>;
  /** A new sandbox from the image of another one, which the agent never touched. */
  fresh(name?: string, options?: Pick<OpenSandboxOptions, "env" | "signal">): Promise<TaskSandbox>;
  /** The open sandbox with this name; an error if there is none. */
  get(name: string): TaskSandbox;
  find(name: string): TaskSandbox | null;
  list(): readonly TaskSandbox[];
}
