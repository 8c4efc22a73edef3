import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { EngineAbilities, Sandbox, SandboxEngine, SandboxSpec } from "../engine.ts";
import { Rounds } from "../periodic-checks.ts";
import { untilAnswers } from "../probe.ts";
import { ControlGroups, killGroup, removeGroup } from "./control-groups.ts";
import { type Doomed, killAll, processesOf, signalGroup } from "./kill.ts";
import { connectPort, tellsListeners } from "./ports.ts";
import { isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "./process-table.ts";
import { defaultPath, launch, markerOf, programOf } from "./program.ts";
import { ProcessSandbox } from "./sandbox.ts";
import { isSandboxId, readSandboxes, removeFolder, SandboxFolder, type SandboxRecord, socketFor } from "./sandbox-folder.ts";

export interface ProcessEngineOptions {
  /** Sandboxes live in its subfolder `sandboxes`. */
  readonly home: string;
  /** Where sandboxes look for programs; nothing of our own PATH reaches them unless it is given here. */
  readonly path?: string;
  /** Flags for sandboxes whose program is Node. */
  readonly nodeOptions?: readonly string[];
  /** How long a sandbox may take to end by itself. */
  readonly graceMs?: number;
  /** How large a sandbox's log may grow before its older half is dropped. */
  readonly logBytes?: number;
  /** Whether to keep each sandbox in a control group where this machine lets us; it is then the surest way to find its processes. */
  readonly useControlGroups?: boolean;
  /** Where sockets go whose path in the sandbox's own folder would be too long. */
  readonly runtimeFolder?: string;
}

/**
 * Sandboxes that are processes of this machine: each with a process group, a working directory and an environment of its own,
 * and no walls beyond that. They outlive us, and the next engine on the same home finds them.
 *
 * Memory is watched once a second while an engine runs, and Node is told its heap's size; CPU time is the system's to
 * limit, for each process of a sandbox by itself. So limits stop accidents, not intent.
 */
export class ProcessEngine implements SandboxEngine {
  readonly name = "process";
  readonly #options: Required<Omit<ProcessEngineOptions, "home">>;
  readonly #folder: string;
  readonly #table: ProcessTable = openProcessTable();
  readonly #self: ProcessIdentity;
  #groups: ControlGroups | null;
  readonly #tellsListeners = tellsListeners();
  readonly #sandboxes = new Map<string, ProcessSandbox>();
  readonly #making = new Map<string, Promise<Sandbox>>();
  readonly #destroying = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #adopting: Promise<void> | undefined;
  // Our own children tell us when they end; whom we adopted, we have to look after.
  readonly #adopted = new Rounds<ProcessSandbox>(250, (sandbox) => this.#lookAfter(sandbox));
  readonly #growing = new Rounds<ProcessSandbox>(1_000, (sandbox) => this.#measure(sandbox));

  constructor({ home, ...options }: ProcessEngineOptions) {
    if (process.platform === "win32") {
      throw new PlatformError(
        "sandbox.unsupported",
        "the process engine needs process groups and unix sockets, which Windows lacks; use WSL",
      );
    }
    mkdirSync(join(home, "sandboxes"), { recursive: true });
    this.#folder = realpathSync(join(home, "sandboxes"));
    this.#options = { ...defaults, path: defaultPath(), runtimeFolder: tmpdir(), ...options };
    this.#self = { pid: process.pid, start: this.#table.look(process.pid)?.start ?? "" };
    this.#groups = this.#options.useControlGroups ? ControlGroups.open(this.#folder) : null;
  }

  get can(): EngineAbilities {
    const never = { images: false, isolates: false, limits: false, mounts: false, initCommand: false };
    return { ...never, findsStrays: this.#groups !== null, ports: this.#tellsListeners };
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    demandValid(spec);
    if (this.#closing.signal.aborted) throw new PlatformError("server.draining", `sandbox '${spec.id}' is not made: the engine is closed`);
    if (signal.aborted) throw cancelled(spec.id);
    const folder = new SandboxFolder(join(this.#folder, spec.id));
    const record = this.#newRecord(spec, folder);
    try {
      // Written before there is a process: a crash in between leaves something that the next engine can see.
      folder.create(record);
      const making = this.#start(spec, folder, record, signal);
      this.#making.set(spec.id, making);
      return await making.finally(() => this.#making.delete(spec.id));
    } catch (error) {
      throw isPlatformError(error) ? error : startFailed(spec, messageOf(error), []);
    }
  }

  async list(): Promise<readonly Sandbox[]> {
    this.#adopting ??= this.#adopt().finally(() => {
      this.#adopting = undefined;
    });
    await this.#adopting;
    return [...this.#sandboxes.values()].filter((sandbox) => !sandbox.hasExited && isRunning(this.#table, sandbox.process));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#making.values());
    // A caller may not wait for its destroy; without this, an exit of the server in between would leave files.
    await Promise.allSettled(this.#destroying);
    this.#adopted.close();
    this.#growing.close();
  }

  #newRecord(spec: SandboxSpec, folder: SandboxFolder): SandboxRecord {
    return {
      format: 2,
      id: spec.id,
      labels: spec.labels,
      createdAt: new Date().toISOString(),
      socket: socketFor(folder.path, this.#options.runtimeFolder),
      memoryMb: spec.memoryMb ?? null,
      secret: randomBytes(16).toString("hex"),
      group: this.#groups?.pathOf(spec.id) ?? null,
      maker: this.#self,
      process: null,
      isReady: false,
    };
  }

  async #start(spec: SandboxSpec, folder: SandboxFolder, record: SandboxRecord, signal: AbortSignal): Promise<Sandbox> {
    let started = record;
    try {
      const child = await launch(programOf(spec, folder, record, this.#options), folder);
      const process = { pid: child.pid as number, start: this.#table.look(child.pid as number)?.start ?? "" };
      started = { ...record, process };
      // Node needs longer for its start than this takes, so no child is born outside the group.
      const entering = this.#enter(record.group, process.pid);
      const sandbox = this.#openSandbox(folder, { ...record, process, isReady: true });
      child.once("exit", (code, signal) => sandbox.noteExit({ code, signal }));
      folder.write(started);
      const [isGrouped] = await Promise.all([entering, this.#untilReady(sandbox, spec, signal)]);
      if (!isGrouped) sandbox.leaveGroup();
      folder.write(sandbox.record);
      this.#hold(sandbox);
      return sandbox;
    } catch (error) {
      await this.#clear(folder, started);
      throw error;
    }
  }

  async #untilReady(sandbox: ProcessSandbox, spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const fail = (reason: string) => stop.signal.aborted || stop.abort(startFailed(spec, reason, sandbox.log.tail(20)));
    const cancel = () => stop.abort(cancelled(spec.id));
    const timer = setTimeout(() => fail(lateness(sandbox, spec)), spec.startTimeoutMs);
    sandbox.exited.then(({ reason }) => fail(reason));
    signal.addEventListener("abort", cancel);
    this.#closing.signal.addEventListener("abort", cancel);
    if (signal.aborted || this.#closing.signal.aborted) cancel();
    try {
      await untilAnswers(sandbox.record.socket, stop.signal);
    } finally {
      stop.abort();
      clearTimeout(timer);
      signal.removeEventListener("abort", cancel);
      this.#closing.signal.removeEventListener("abort", cancel);
    }
  }

  /** Whether the process is in the group. If it cannot be moved, no other will be tried. */
  async #enter(group: string | null, pid: number): Promise<boolean> {
    if (group === null || this.#groups === null) return false;
    try {
      await this.#groups.enter(group, pid);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") this.#groups = null;
      return false;
    }
  }

  #openSandbox(folder: SandboxFolder, record: SandboxRecord & { process: ProcessIdentity }): ProcessSandbox {
    const sandbox = new ProcessSandbox(folder, record, record.process, this.#options.logBytes, (one) => this.#destroy(one));
    if (this.#tellsListeners) sandbox.connect = (port, signal) => this.#connect(sandbox, port, signal);
    sandbox.exited.then(() => {
      this.#adopted.delete(sandbox);
      this.#growing.delete(sandbox);
      // Children that outlive the program serve nobody.
      signalGroup(this.#table, sandbox.process, "SIGKILL");
      if (sandbox.record.group !== null) void endGroup(sandbox.record.group);
    });
    return sandbox;
  }

  #connect(sandbox: ProcessSandbox, port: number, signal: AbortSignal): Promise<Socket> {
    // Its number may be another process's by now.
    const pid = isRunning(this.#table, sandbox.process) ? sandbox.pid : null;
    return connectPort(
      { id: sandbox.id, pid, others: () => processesOf(doomed(sandbox.folder, sandbox.record, sandbox.seen), this.#table) },
      port,
      signal,
    );
  }

  #hold(sandbox: ProcessSandbox): void {
    this.#sandboxes.set(sandbox.id, sandbox);
    if (!sandbox.hasExited) this.#growing.add(sandbox);
  }

  #destroy(sandbox: ProcessSandbox): Promise<void> {
    const destroying = this.#end(sandbox).finally(() => this.#destroying.delete(destroying));
    this.#destroying.add(destroying);
    return destroying;
  }

  async #end(sandbox: ProcessSandbox): Promise<void> {
    sandbox.blame("the sandbox was destroyed");
    await killAll(doomed(sandbox.folder, sandbox.record, sandbox.seen), this.#table, this.#options.graceMs);
    sandbox.noteExit(null);
    try {
      if (sandbox.record.group !== null) await removeGroup(sandbox.record.group);
      await sandbox.folder.remove(sandbox.record, this.#self);
    } catch (cause) {
      throw new PlatformError("sandbox.destroy_failed", `the files of sandbox '${sandbox.id}' cannot be removed: ${messageOf(cause)}`, {
        cause,
      });
    }
    if (this.#sandboxes.get(sandbox.id) === sandbox) this.#sandboxes.delete(sandbox.id);
  }

  /** Takes over what an earlier process of ours left running, and clears away what it left otherwise. */
  async #adopt(): Promise<void> {
    const { ids, parts } = readSandboxes(this.#folder);
    const clearing: Promise<void>[] = [];
    for (const { path, by } of parts) if (!isRunning(this.#table, by)) clearing.push(removeFolder(path));
    for (const id of ids) {
      const held = this.#sandboxes.get(id);
      // Who holds one that has ended destroys it; but of those that were only seen here, the holder may have died over it.
      if (held !== undefined && (isRunning(this.#table, held.process) || isRunning(this.#table, held.record.maker))) continue;
      if (this.#making.has(id)) continue;
      const folder = new SandboxFolder(join(this.#folder, id));
      const record = folder.read();
      if (isAlive(record, this.#table)) {
        const sandbox = this.#openSandbox(folder, record);
        this.#hold(sandbox);
        this.#adopted.add(sandbox);
      } else if (record === null || !isRunning(this.#table, record.maker) || (record.isReady && record.maker.pid === this.#self.pid)) {
        // One that another living process has made is that one's to clear, which may still want to read why it ended.
        clearing.push(this.#clear(folder, record));
      }
    }
    // What others have made and cleared away is forgotten here too.
    for (const sandbox of this.#sandboxes.values())
      if (sandbox.hasExited && !existsSync(sandbox.folder.path)) this.#sandboxes.delete(sandbox.id);
    // What cannot be cleared away now is met again the next time.
    await Promise.allSettled(clearing);
  }

  async #clear(folder: SandboxFolder, record: SandboxRecord | null): Promise<void> {
    const ending = doomed(folder, record);
    await killAll(ending, this.#table, 0);
    if (ending.group !== null) await removeGroup(ending.group);
    await folder.remove(record, this.#self);
  }

  #lookAfter(sandbox: ProcessSandbox): void {
    if (!isRunning(this.#table, sandbox.process)) sandbox.noteExit(null);
  }

  #measure(sandbox: ProcessSandbox): void {
    sandbox.log.trim();
    const { memoryMb, group } = sandbox.record;
    if (group === null) sandbox.see(this.#table);
    if (memoryMb === null) return;
    const used = this.#table.memoryMbOf(sandbox.pid) ?? 0;
    if (used <= memoryMb) return;
    sandbox.blame(`the program was ended because it used ${Math.ceil(used)} MB of memory, and it may have ${memoryMb} MB`);
    signalGroup(this.#table, sandbox.process, "SIGKILL");
  }
}

const defaults = { nodeOptions: [], useControlGroups: true, graceMs: 3_000, logBytes: 4 * 1024 * 1024 } as const;

function doomed(folder: SandboxFolder, record: SandboxRecord | null, seen: readonly ProcessIdentity[] = []): Doomed {
  const id = basename(folder.path);
  const group = record?.group ?? null;
  return {
    id,
    leader: record?.process ?? null,
    marker: record === null ? null : markerOf(folder, record),
    log: folder.log,
    group,
    // One that did not get ready may not have been moved into its group.
    isGrouped: group !== null && record?.isReady === true,
    seen,
  };
}

/** Whatever becomes of the sandbox's files: its group is not among them. */
async function endGroup(group: string): Promise<void> {
  killGroup(group);
  await removeGroup(group);
}

function isAlive(record: SandboxRecord | null, table: ProcessTable): record is SandboxRecord & { process: ProcessIdentity } {
  return record?.isReady === true && record.process !== null && isRunning(table, record.process);
}

function demandValid({ id, command }: SandboxSpec): void {
  if (!isSandboxId(id)) {
    throw new PlatformError("request.invalid", `'${id}' is no id for a sandbox: use up to 128 letters, digits, '.', '_' and '-'`);
  }
  if (command.length === 0) throw new PlatformError("request.invalid", `sandbox '${id}' has no command to run`);
}

function lateness(sandbox: ProcessSandbox, { startTimeoutMs }: SandboxSpec): string {
  const state = existsSync(sandbox.record.socket)
    ? "it listens, but did not answer GET /health"
    : "it did not listen on the socket it was given";
  const last = sandbox.log.tail(1)[0];
  return `${state} within ${startTimeoutMs} ms${last === undefined ? "" : `; it last printed: ${last}`}`;
}

function startFailed(spec: SandboxSpec, reason: string, log: readonly string[]): PlatformError {
  return new PlatformError("sandbox.start_failed", `sandbox '${spec.id}' did not start: ${reason}`, { details: { reason, log } });
}

function cancelled(id: string): PlatformError {
  return new PlatformError("request.cancelled", `sandbox '${id}' is not made: the caller gave up`);
}
