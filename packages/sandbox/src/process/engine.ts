import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { Box, BoxSpec, EngineAbilities, SandboxEngine } from "../engine.ts";
import { untilAnswers } from "../probe.ts";
import { Rounds } from "../rounds.ts";
import { ProcessBox } from "./box.ts";
import { BoxFolder, type BoxRecord, isBoxId, readBoxes, removeFolder, socketFor } from "./box-folder.ts";
import { ControlGroups, killGroup, removeGroup } from "./control-groups.ts";
import { type Doomed, killAll, processesOf, signalGroup } from "./kill.ts";
import { connectPort, tellsListeners } from "./ports.ts";
import { isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "./process-table.ts";
import { defaultPath, launch, markerOf, programOf } from "./program.ts";

export interface ProcessEngineOptions {
  /** Boxes live in its subfolder `boxes`. */
  readonly home: string;
  /** Where boxes look for programs; nothing of our own PATH reaches them unless it is given here. */
  readonly path?: string;
  /** Flags for boxes whose program is Node. */
  readonly nodeOptions?: readonly string[];
  /** How long a box may take to end by itself. */
  readonly graceMs?: number;
  /** How large a box's log may grow before its older half is dropped. */
  readonly logBytes?: number;
  /** Whether to keep each box in a control group where this machine lets us; it is then the surest way to find its processes. */
  readonly useControlGroups?: boolean;
  /** Where sockets go whose path in the box's own folder would be too long. */
  readonly runtimeFolder?: string;
}

/**
 * Boxes that are processes of this machine: each with a process group, a working directory and an environment of its own,
 * and no walls beyond that. They outlive us, and the next engine on the same home finds them.
 *
 * Memory is watched once a second while an engine runs, and Node is told its heap's size; CPU time is the system's to
 * limit, for each process of a box by itself. So limits stop accidents, not intent.
 */
export class ProcessEngine implements SandboxEngine {
  readonly name = "process";
  readonly #options: Required<Omit<ProcessEngineOptions, "home">>;
  readonly #folder: string;
  readonly #table: ProcessTable = openProcessTable();
  readonly #self: ProcessIdentity;
  #groups: ControlGroups | null;
  readonly #tellsListeners = tellsListeners();
  readonly #boxes = new Map<string, ProcessBox>();
  readonly #making = new Map<string, Promise<Box>>();
  readonly #destroying = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #adopting: Promise<void> | undefined;
  // Our own children tell us when they end; whom we adopted, we have to look after.
  readonly #adopted = new Rounds<ProcessBox>(250, (box) => this.#lookAfter(box));
  readonly #growing = new Rounds<ProcessBox>(1_000, (box) => this.#measure(box));

  constructor({ home, ...options }: ProcessEngineOptions) {
    if (process.platform === "win32") {
      throw new PlatformError(
        "sandbox.unsupported",
        "the process engine needs process groups and unix sockets, which Windows lacks; use WSL",
      );
    }
    mkdirSync(join(home, "boxes"), { recursive: true });
    this.#folder = realpathSync(join(home, "boxes"));
    this.#options = { ...defaults, path: defaultPath(), runtimeFolder: tmpdir(), ...options };
    this.#self = { pid: process.pid, start: this.#table.look(process.pid)?.start ?? "" };
    this.#groups = this.#options.useControlGroups ? ControlGroups.open(this.#folder) : null;
  }

  get can(): EngineAbilities {
    const never = { images: false, isolates: false, limits: false, mounts: false, initCommand: false };
    return { ...never, findsStrays: this.#groups !== null, ports: this.#tellsListeners };
  }

  async create(spec: BoxSpec, signal: AbortSignal): Promise<Box> {
    demandValid(spec);
    if (this.#closing.signal.aborted) throw new PlatformError("server.draining", `box '${spec.id}' is not made: the engine is closed`);
    if (signal.aborted) throw cancelled(spec.id);
    const folder = new BoxFolder(join(this.#folder, spec.id));
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

  async list(): Promise<readonly Box[]> {
    this.#adopting ??= this.#adopt().finally(() => {
      this.#adopting = undefined;
    });
    await this.#adopting;
    return [...this.#boxes.values()].filter((box) => !box.hasExited && isRunning(this.#table, box.process));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#making.values());
    // A caller may not wait for its destroy; without this, an exit of the server in between would leave files.
    await Promise.allSettled(this.#destroying);
    this.#adopted.close();
    this.#growing.close();
  }

  #newRecord(spec: BoxSpec, folder: BoxFolder): BoxRecord {
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

  async #start(spec: BoxSpec, folder: BoxFolder, record: BoxRecord, signal: AbortSignal): Promise<Box> {
    let started = record;
    try {
      const child = await launch(programOf(spec, folder, record, this.#options), folder);
      const process = { pid: child.pid as number, start: this.#table.look(child.pid as number)?.start ?? "" };
      started = { ...record, process };
      // Node needs longer for its start than this takes, so no child is born outside the group.
      const entering = this.#enter(record.group, process.pid);
      const box = this.#openBox(folder, { ...record, process, isReady: true });
      child.once("exit", (code, signal) => box.noteExit({ code, signal }));
      folder.write(started);
      const [isGrouped] = await Promise.all([entering, this.#untilReady(box, spec, signal)]);
      if (!isGrouped) box.leaveGroup();
      folder.write(box.record);
      this.#hold(box);
      return box;
    } catch (error) {
      await this.#clear(folder, started);
      throw error;
    }
  }

  async #untilReady(box: ProcessBox, spec: BoxSpec, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const fail = (reason: string) => stop.signal.aborted || stop.abort(startFailed(spec, reason, box.log.tail(20)));
    const cancel = () => stop.abort(cancelled(spec.id));
    const timer = setTimeout(() => fail(lateness(box, spec)), spec.startTimeoutMs);
    box.exited.then(({ reason }) => fail(reason));
    signal.addEventListener("abort", cancel);
    this.#closing.signal.addEventListener("abort", cancel);
    if (signal.aborted || this.#closing.signal.aborted) cancel();
    try {
      await untilAnswers(box.record.socket, stop.signal);
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

  #openBox(folder: BoxFolder, record: BoxRecord & { process: ProcessIdentity }): ProcessBox {
    const box = new ProcessBox(folder, record, record.process, this.#options.logBytes, (one) => this.#destroy(one));
    if (this.#tellsListeners) box.connect = (port, signal) => this.#connect(box, port, signal);
    box.exited.then(() => {
      this.#adopted.delete(box);
      this.#growing.delete(box);
      // Children that outlive the program serve nobody.
      signalGroup(this.#table, box.process, "SIGKILL");
      if (box.record.group !== null) void endGroup(box.record.group);
    });
    return box;
  }

  #connect(box: ProcessBox, port: number, signal: AbortSignal): Promise<Socket> {
    // Its number may be another process's by now.
    const pid = isRunning(this.#table, box.process) ? box.pid : null;
    return connectPort({ id: box.id, pid, others: () => processesOf(doomed(box.folder, box.record, box.seen), this.#table) }, port, signal);
  }

  #hold(box: ProcessBox): void {
    this.#boxes.set(box.id, box);
    if (!box.hasExited) this.#growing.add(box);
  }

  #destroy(box: ProcessBox): Promise<void> {
    const destroying = this.#end(box).finally(() => this.#destroying.delete(destroying));
    this.#destroying.add(destroying);
    return destroying;
  }

  async #end(box: ProcessBox): Promise<void> {
    box.blame("the box was destroyed");
    await killAll(doomed(box.folder, box.record, box.seen), this.#table, this.#options.graceMs);
    box.noteExit(null);
    try {
      if (box.record.group !== null) await removeGroup(box.record.group);
      await box.folder.remove(box.record, this.#self);
    } catch (cause) {
      throw new PlatformError("sandbox.destroy_failed", `the files of box '${box.id}' cannot be removed: ${messageOf(cause)}`, { cause });
    }
    if (this.#boxes.get(box.id) === box) this.#boxes.delete(box.id);
  }

  /** Takes over what an earlier process of ours left running, and clears away what it left otherwise. */
  async #adopt(): Promise<void> {
    const { ids, parts } = readBoxes(this.#folder);
    const clearing: Promise<void>[] = [];
    for (const { path, by } of parts) if (!isRunning(this.#table, by)) clearing.push(removeFolder(path));
    for (const id of ids) {
      const held = this.#boxes.get(id);
      // Who holds one that has ended destroys it; but of those that were only seen here, the holder may have died over it.
      if (held !== undefined && (isRunning(this.#table, held.process) || isRunning(this.#table, held.record.maker))) continue;
      if (this.#making.has(id)) continue;
      const folder = new BoxFolder(join(this.#folder, id));
      const record = folder.read();
      if (isAlive(record, this.#table)) {
        const box = this.#openBox(folder, record);
        this.#hold(box);
        this.#adopted.add(box);
      } else if (record === null || !isRunning(this.#table, record.maker) || (record.isReady && record.maker.pid === this.#self.pid)) {
        // One that another living process has made is that one's to clear, which may still want to read why it ended.
        clearing.push(this.#clear(folder, record));
      }
    }
    // What others have made and cleared away is forgotten here too.
    for (const box of this.#boxes.values()) if (box.hasExited && !existsSync(box.folder.path)) this.#boxes.delete(box.id);
    // What cannot be cleared away now is met again the next time.
    await Promise.allSettled(clearing);
  }

  async #clear(folder: BoxFolder, record: BoxRecord | null): Promise<void> {
    const ending = doomed(folder, record);
    await killAll(ending, this.#table, 0);
    if (ending.group !== null) await removeGroup(ending.group);
    await folder.remove(record, this.#self);
  }

  #lookAfter(box: ProcessBox): void {
    if (!isRunning(this.#table, box.process)) box.noteExit(null);
  }

  #measure(box: ProcessBox): void {
    box.log.trim();
    const { memoryMb, group } = box.record;
    if (group === null) box.see(this.#table);
    if (memoryMb === null) return;
    const used = this.#table.memoryMbOf(box.pid) ?? 0;
    if (used <= memoryMb) return;
    box.blame(`the program was ended because it used ${Math.ceil(used)} MB of memory, and it may have ${memoryMb} MB`);
    signalGroup(this.#table, box.process, "SIGKILL");
  }
}

const defaults = { nodeOptions: [], useControlGroups: true, graceMs: 3_000, logBytes: 4 * 1024 * 1024 } as const;

function doomed(folder: BoxFolder, record: BoxRecord | null, seen: readonly ProcessIdentity[] = []): Doomed {
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

/** Whatever becomes of the box's files: its group is not among them. */
async function endGroup(group: string): Promise<void> {
  killGroup(group);
  await removeGroup(group);
}

function isAlive(record: BoxRecord | null, table: ProcessTable): record is BoxRecord & { process: ProcessIdentity } {
  return record?.isReady === true && record.process !== null && isRunning(table, record.process);
}

function demandValid({ id, command }: BoxSpec): void {
  if (!isBoxId(id)) {
    throw new PlatformError("request.invalid", `'${id}' is no id for a box: use up to 128 letters, digits, '.', '_' and '-'`);
  }
  if (command.length === 0) throw new PlatformError("request.invalid", `box '${id}' has no command to run`);
}

function lateness(box: ProcessBox, { startTimeoutMs }: BoxSpec): string {
  const state = existsSync(box.record.socket)
    ? "it listens, but did not answer GET /health"
    : "it did not listen on the socket it was given";
  const last = box.log.tail(1)[0];
  return `${state} within ${startTimeoutMs} ms${last === undefined ? "" : `; it last printed: ${last}`}`;
}

function startFailed(spec: BoxSpec, reason: string, log: readonly string[]): PlatformError {
  return new PlatformError("sandbox.start_failed", `box '${spec.id}' did not start: ${reason}`, { details: { reason, log } });
}

function cancelled(id: string): PlatformError {
  return new PlatformError("request.cancelled", `box '${id}' is not made: the caller gave up`);
}
