import { mkdirSync, readFileSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { identityOf, isRunning, openProcessTable, type ProcessTable } from "../../host/process-table.ts";
import { ControlGroup } from "../cgroups/group.ts";
import type { Hierarchy } from "../cgroups/hierarchy.ts";
import { expectMoves } from "../cgroups/moves.ts";
import type { OciConfig } from "../config.ts";
import { runCommand } from "./command.ts";
import type { Dialect } from "./dialect.ts";
import { containerId, type RuntimeRecord, RuntimeRecords } from "./records.ts";
import type { OciRuntime, RunOptions, StartedSandbox } from "./runtime.ts";

/** A start takes 0.2 seconds, a checkpoint of a gigabyte several; a program that takes longer hangs. */
const TIMEOUT_MS = 60_000;

interface Tool {
  readonly dialect: Dialect;
  readonly program: string;
}

export interface CommandRuntimeOptions extends Tool {
  /**
   * Program for sandboxes with the users of the machine, if it is another one: crun mounts their root without `nosuid` and `nodev`. Null if
   * it is not installed.
   */
  readonly forMachineUsers?: Tool | null;
  readonly root: string;
  readonly hierarchy: Hierarchy;
  /** Where runsc mounts what its sandboxes share; without it, each has its own. The caller unmounts it. */
  readonly sharedFolder?: string | undefined;
}

/** Runs the program of a runtime for each call. Sandboxes outlive this process; another one on the same root finds them. */
export class CommandRuntime implements OciRuntime {
  readonly name: OciRuntime["name"];
  readonly program: string;
  readonly #tool: Tool;
  readonly #forMachineUsers: Tool | null;
  /** Where the program stores what it knows of its sandboxes. */
  protected readonly stateFolder: string;
  readonly #records: RuntimeRecords;
  readonly #hierarchy: Hierarchy;
  readonly #sharedFolder: string | undefined;
  readonly #processes: ProcessTable = openProcessTable();
  #compiledFilter: string | null = null;

  constructor({ dialect, program, forMachineUsers, root, hierarchy, sharedFolder }: CommandRuntimeOptions) {
    this.name = dialect.name;
    this.#tool = { dialect, program };
    this.#forMachineUsers = forMachineUsers === undefined ? this.#tool : forMachineUsers;
    this.program = program;
    this.#hierarchy = hierarchy;
    this.#sharedFolder = sharedFolder;
    this.stateFolder = join(root, "state");
    mkdirSync(this.stateFolder, { recursive: true, mode: 0o700 });
    this.#records = new RuntimeRecords(join(root, "sandboxes"));
  }

  get compiledFilter(): string | null {
    return this.#compiledFilter;
  }

  run(id: string, bundle: string, options: RunOptions): Promise<StartedSandbox> {
    return this.start(id, bundle, options, `sandbox ${id} could not be started`);
  }

  async isRunning(id: string): Promise<boolean> {
    const record = await this.#records.find(id);
    return record?.process != null && isRunning(this.#processes, record.process);
  }

  async remove(id: string): Promise<void> {
    const record = await this.#records.find(id);
    if (record === null) return this.#records.remove(id);
    const group = this.#groupOf(record);
    if (record.process === null) await this.#killStart(id);
    // Not by the runtime, which kills and polls for a tenth of a second. The whole group: gVisor has helpers beside its kernel.
    await group.kill();
    // What is left are the files by which the runtime knows the sandbox.
    for (const name of await readdir(this.stateFolder))
      if (name.includes(containerId(id))) await rm(join(this.stateFolder, name), { recursive: true, force: true });
    await group.remove();
    await this.#records.remove(id);
  }

  async freeze(id: string): Promise<void> {
    await this.#groupOf(await this.#records.get(id)).freeze();
  }

  async thaw(id: string): Promise<void> {
    await this.#groupOf(await this.#records.get(id)).thaw();
  }

  list(): Promise<string[]> {
    return this.#records.list();
  }

  /** `from`: the subcommand and options that replace those of `run`. */
  protected async start(
    id: string,
    bundle: string,
    options: RunOptions,
    problem: string,
    from: readonly string[] = ["run", "--detach"],
  ): Promise<StartedSandbox> {
    if ((await this.#records.find(id)) !== null) throw new PlatformError("sandbox.start_failed", `sandbox ${id} exists already`);
    const { linux } = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8")) as Pick<OciConfig, "linux">;
    const tool = linux.uidMappings === undefined ? this.#forMachineUsers : this.#tool;
    if (tool === null)
      throw new PlatformError(
        "sandbox.unsupported",
        `${problem}: ${this.program} starts only sandboxes with users of their own; install runc, on Debian with: apt-get install runc`,
      );
    const { logPath, signal, diskMb, setsUserIds = false, root } = options;
    const own = { setsUserIds, ...(diskMb !== undefined && { diskMb }) };
    const record: RuntimeRecord = { id, process: null, groupPath: linux.cgroupsPath, ...own };
    await this.#records.write(record);
    try {
      const pidPath = join(this.#records.folderOf(id), "pid");
      const args = [...from, "--bundle", bundle, "--pid-file", pidPath, containerId(id)];
      await this.#call(tool, record, args, { problem, logPath, signal }, root);
      const pid = Number(readFileSync(pidPath, "utf8"));
      const process = identityOf(this.#processes, pid);
      if (process === null) throw new PlatformError("sandbox.start_failed", `${problem}: process 1 ended at once`);
      await this.#records.write({ ...record, process });
      this.#compiledFilter ??= this.#filterOf(id, tool);
      return { pid };
    } catch (error) {
      await this.remove(id);
      throw error;
    }
  }

  #filterOf(id: string, { dialect: { filterFile } }: Tool): string | null {
    if (filterFile === undefined) return null;
    try {
      return readFileSync(join(this.stateFolder, containerId(id), filterFile)).toString("base64") || null;
    } catch {
      // Another version of the program may store it elsewhere, and compiles it for each sandbox.
      return null;
    }
  }

  /** Kills what is left of a start: processes of crun wait for each other, and do not notice that one of them was killed. */
  async #killStart(id: string): Promise<void> {
    for (const pid of await this.#processes.findMarked(markOf(id))) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {}
    }
  }

  /** The process of a sandbox that exists; null if there is no such sandbox. */
  protected async processOf(id: string): Promise<StartedSandbox | null> {
    const process = (await this.#records.find(id))?.process ?? null;
    return process === null ? null : { pid: process.pid };
  }

  /** Runs a subcommand for a sandbox that exists. */
  protected async call(id: string, args: readonly string[], problem: string, signal: AbortSignal): Promise<void> {
    await this.#call(this.#tool, await this.#records.get(id), [...args, containerId(id)], { problem, signal });
  }

  async #call(
    { dialect, program }: Tool,
    { id, diskMb, setsUserIds = false }: RuntimeRecord,
    args: readonly string[],
    options: { readonly problem: string; readonly logPath?: string; readonly signal?: AbortSignal },
    root?: object,
  ): Promise<void> {
    const errorsPath = join(this.#records.folderOf(id), "errors");
    const sharedFolder = this.#sharedFolder;
    const settings = { root: this.stateFolder, errorsPath, sharedFolder, setsUserIds };
    const global = dialect.options({ ...settings, ...(diskMb !== undefined && { diskMb }) });
    using _moves = dialect.movesOften ? expectMoves(this.#hierarchy) : null;
    const launching = { ...dialect.launching?.(this.#hierarchy), root };
    const argv = [program, ...global, ...args];
    await runCommand({ argv, errorsPath, timeoutMs: TIMEOUT_MS, launching, mark: markOf(id), ...options });
  }

  #groupOf({ groupPath }: RuntimeRecord): ControlGroup {
    return new ControlGroup(this.#hierarchy, groupPath);
  }
}

/** A variable of the programs that start a sandbox, and of their children outside of it. */
function markOf(id: string): string {
  return `AENV_STARTS=${containerId(id)}`;
}
