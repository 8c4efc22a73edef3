import { type KeyObject, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { messageOf, PlatformError } from "@aenv/contract";
import {
  type EngineAbilities,
  noAbilities,
  type Sandbox,
  type SandboxAddress,
  type SandboxEngine,
  type SandboxSpec,
} from "../engine/engine.ts";
import { ControlGroups, createGroup, endGroup, removeGroup } from "../host/control-groups.ts";
import type { ProcessEnd } from "../host/exit-reason.ts";
import { joined } from "../host/once.ts";
import { identityNow, isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import { socketFor } from "../host/socket-path.ts";
import { openInitKey } from "../init/key.ts";
import { connectStartingInit } from "../init/ready.ts";
import { EngineWork } from "../lifecycle/engine-work.ts";
import { PeriodicChecks } from "../lifecycle/periodic-checks.ts";
import { waitUntilAnswering, waitUntilReady } from "../lifecycle/readiness.ts";
import { assertValid, unsupported } from "../lifecycle/spec-check.ts";
import { startFailed } from "../lifecycle/start-errors.ts";
import { startWithin } from "../lifecycle/start-limits.ts";
import { APPENDED, healthPathOf } from "../spec/listening.ts";
import { copyFolder } from "./copy-folder.ts";
import { readGivenVariables } from "./given-variables.ts";
import { initAddressOf, launchInit } from "./init.ts";
import { type KillTarget, killAll, processesOf, signalGroup } from "./kill.ts";
import { PortReservations } from "./port-reservations.ts";
import { canFindListeners, connectPort, findListener, type SandboxProcesses } from "./ports.ts";
import { defaultPath, markerOf, markerVariable, ownVariables, programOf, startProgram } from "./program.ts";
import { ProcessSandbox } from "./sandbox.ts";
import { type SandboxFolder, SandboxFolders, type SandboxRecord } from "./sandbox-folder.ts";

export interface ProcessEngineOptions {
  /** Sandboxes are kept in its subfolder `sandboxes`. */
  readonly home: string;
  /** The PATH of sandboxes; the PATH of this process is not inherited. */
  readonly path?: string;
  /** Flags for sandboxes whose program is Node. */
  readonly nodeOptions?: readonly string[];
  /** Time between SIGTERM and SIGKILL. */
  readonly graceMs?: number;
  /** Size at which the older half of a sandbox's log is dropped. */
  readonly logBytes?: number;
  /** Whether to put each sandbox into a control group where the machine allows it: the most reliable way to find its processes. */
  readonly useControlGroups?: boolean;
  /** Whether to start an init beside each program, so that commands run in the sandbox and its files can be accessed. */
  readonly useInit?: boolean;
  /** Folder for sockets whose path in the sandbox's own folder would be too long. */
  readonly runtimeFolder?: string;
}

/**
 * Sandboxes that are processes of this machine, each with its own process group, working directory and environment variables,
 * and no further isolation. They outlive this process, and the next engine on the same home adopts them.
 *
 * Memory is measured once a second while an engine runs, and the heap of Node is limited by a flag. The system limits the CPU
 * time of each process of a sandbox separately. So the limits stop accidents, not intent.
 */
export class ProcessEngine implements SandboxEngine {
  readonly name = "process";
  readonly commandsHint =
    "plain processes have no commands and files unless the server runs with --process-commands; the engines oci and docker always have them";
  readonly #options: Required<Omit<ProcessEngineOptions, "home">>;
  readonly #folders: SandboxFolders;
  readonly #table: ProcessTable = openProcessTable();
  readonly #self: ProcessIdentity;
  #groups: ControlGroups | null;
  readonly #canFindListeners = canFindListeners();
  readonly #sandboxes = new Map<string, ProcessSandbox>();
  readonly #work = new EngineWork();
  readonly #ports = new PortReservations();
  readonly commands?: { readonly key: KeyObject };
  readonly #adopt = joined(() => this.#adoptAll());
  // Children of this process report their exit; adopted sandboxes have to be polled.
  readonly #adopted = new PeriodicChecks<ProcessSandbox>(250, (sandbox) => this.#checkAlive(sandbox));
  readonly #growing = new PeriodicChecks<ProcessSandbox>(1_000, (sandbox) => this.#measure(sandbox));

  constructor({ home, ...options }: ProcessEngineOptions) {
    if (process.platform === "win32") {
      throw new PlatformError(
        "sandbox.unsupported",
        "the process engine needs process groups and unix sockets, which Windows lacks; use WSL",
      );
    }
    mkdirSync(join(home, "sandboxes"), { recursive: true });
    const folder = realpathSync(join(home, "sandboxes"));
    this.#options = { ...defaults, path: defaultPath(), runtimeFolder: tmpdir(), ...options };
    if (this.#options.useInit) this.commands = { key: openInitKey(home) };
    this.#self = identityNow(this.#table, process.pid);
    this.#folders = new SandboxFolders(folder, this.#self);
    this.#groups = this.#options.useControlGroups ? ControlGroups.open(folder) : null;
  }

  get can(): EngineAbilities {
    const isGrouped = this.#groups !== null;
    return {
      ...noAbilities,
      findsStrays: isGrouped,
      ports: this.#canFindListeners,
      freezes: isGrouped,
    };
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const { id, listening } = spec;
    assertValid(spec, { image: "needs an image, which the process engine does not have" });
    if (listening?.kind === "none") throw unsupported(id, "needs isolation, which the process engine does not have");
    return this.#work.start(id, signal, (either) => this.#start(spec, either));
  }

  async list(): Promise<readonly Sandbox[]> {
    await this.#adopt();
    return [...this.#sandboxes.values()].filter((sandbox) => !sandbox.hasExited && isRunning(this.#table, sandbox.process));
  }

  async close(): Promise<void> {
    await this.#work.close();
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
      memoryMb: spec.resources?.memoryMb ?? null,
      secret: randomBytes(16).toString("hex"),
      group: this.#groups?.pathOf(spec.id) ?? null,
      hasInit: this.#options.useInit,
      maker: this.#self,
      process: null,
      isReady: false,
    };
  }

  async #start(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const folder = this.#folders.folderOf(spec.id);
    const blank = this.#newRecord(spec, folder);
    // Written before the process exists: after a crash in between, the next engine finds the record.
    await this.#folders.create(blank);
    let started = blank;
    const { listening } = spec;
    let port: number | null = null;
    let launching: Promise<void> | undefined;
    try {
      if (listening?.kind === "port") port = await this.#ports.reserve(listening.port, listening.isFlexible === true);
      const record = port === null ? blank : { ...blank, port };
      if (spec.folder !== undefined) await copyFolder(spec.folder, folder.work);
      const group = await this.#createGroup(record.group);
      const program = await startProgram(programOf(spec, folder, record, this.#options), folder, group);
      const { pid } = program;
      const process = { pid, start: this.#table.find(pid)?.start ?? "" };
      started = { ...record, process };
      const sandbox = this.#openSandbox(folder, { ...record, process, isReady: true });
      void program.ended.then((exit) => this.#onEnded(sandbox, exit));
      this.#folders.write(started);
      const isGrouped = group !== undefined && program.groupError === null;
      if (!isGrouped) await this.#leaveGroup(record.group, program.groupError);
      const startingInit = this.#startInit(folder, record, isGrouped ? group : undefined);
      launching = startingInit.catch(() => undefined);
      await this.#untilReady(sandbox, spec, startingInit, signal);
      if (!isGrouped) sandbox.clearGroup();
      this.#folders.write(sandbox.record);
      this.#register(sandbox);
      return sandbox;
    } catch (error) {
      // An init that starts after its program has ended would not be found.
      await launching;
      await this.#clear(folder, started);
      throw error;
    } finally {
      if (port !== null) this.#ports.release(port);
    }
  }

  async #startInit(folder: SandboxFolder, record: SandboxRecord, group: string | undefined): Promise<void> {
    if (this.commands === undefined) return;
    const variables = { ...ownVariables(folder, this.#options), ...markerVariable(folder, record) };
    const { groupError } = await launchInit(folder, record, this.commands.key, variables, group);
    if (groupError !== null) throw startFailed(record.id, `its init could not be moved into its control group: ${groupError}`);
  }

  #onEnded(sandbox: ProcessSandbox, exit: ProcessEnd["exit"]): void {
    // Without the process that started the program, nobody reports its end.
    if (exit === null && !sandbox.hasExited) this.#adopted.add(sandbox);
    else sandbox.markExited(exit);
  }

  async #untilReady(sandbox: ProcessSandbox, spec: SandboxSpec, startingInit: Promise<void>, signal: AbortSignal): Promise<void> {
    const failed = (reason: string) => startFailed(spec.id, reason, sandbox.log.tail(20));
    const limits = {
      id: spec.id,
      signal,
      timeoutMs: spec.startTimeoutMs,
      timedOut: () => failed(describeTimeout(sandbox, spec)),
    };
    await startWithin(limits, (stop, fail) => {
      sandbox.exited.then(({ reason }) => fail(() => failed(reason)));
      return Promise.all([this.#untilAnswering(sandbox, spec, stop), startingInit.then(() => this.#untilInit(sandbox, stop))]);
    });
  }

  async #untilAnswering(sandbox: ProcessSandbox, { listening }: SandboxSpec, signal: AbortSignal): Promise<void> {
    const { port, socket } = sandbox.record;
    if (port === undefined || listening === undefined) return waitUntilAnswering(socket, signal);
    const find = async (): Promise<SandboxAddress | null> => {
      if (!this.#canFindListeners) return sandbox.address;
      const host = await findListener(this.#processesOf(sandbox), port);
      return host === null ? null : { kind: "tcp", host, port };
    };
    const address = await waitUntilReady(find, listening, signal);
    if (address.kind === "tcp") sandbox.record = { ...sandbox.record, host: address.host };
  }

  async #untilInit({ commands }: ProcessSandbox, signal: AbortSignal): Promise<void> {
    if (commands === undefined || this.commands === undefined) return;
    await (await connectStartingInit(commands.address, this.commands.key, signal)).close();
  }

  /** The group that a program is to join; undefined if there is none. After a failure, control groups are no longer used. */
  async #createGroup(group: string | null): Promise<string | undefined> {
    if (group === null || this.#groups === null) return undefined;
    try {
      await createGroup(group);
      return group;
    } catch {
      this.#groups = null;
      return undefined;
    }
  }

  /** Removes the group of a program that could not be moved into it. */
  async #leaveGroup(group: string | null, error: string | null): Promise<void> {
    // A program that has ended already cannot be moved.
    if (error !== null && error !== "ESRCH") this.#groups = null;
    if (group !== null) await removeGroup(group);
  }

  #openSandbox(folder: SandboxFolder, record: SandboxRecord & { process: ProcessIdentity }): ProcessSandbox {
    const sandbox = new ProcessSandbox(folder, record, record.process, this.#options.logBytes, (one) => this.#work.end(this.#end(one)));
    const defaults = { cwd: folder.work, env: { ...ownVariables(folder, this.#options), ...markerVariable(folder, record) } };
    if (record.hasInit === true) sandbox.commands = { address: initAddressOf(record), defaults };
    if (this.#canFindListeners) {
      sandbox.ports = { connect: (port, signal) => this.#connect(sandbox, port, signal) };
      sandbox.programVariables = () => readGivenVariables(record.process.pid, defaults.env);
    }
    sandbox.exited.then(() => {
      this.#adopted.delete(sandbox);
      this.#growing.delete(sandbox);
      // Children that outlive the program are ended too.
      signalGroup(this.#table, sandbox.process, "SIGKILL");
      // At exit, since it is not among the files of the sandbox.
      if (sandbox.record.group !== null) void endGroup(sandbox.record.group);
    });
    return sandbox;
  }

  #connect(sandbox: ProcessSandbox, port: number, signal: AbortSignal): Promise<Socket> {
    return connectPort(this.#processesOf(sandbox), port, signal);
  }

  #processesOf(sandbox: ProcessSandbox): SandboxProcesses {
    return {
      id: sandbox.id,
      // Another process may have its pid by now.
      pid: isRunning(this.#table, sandbox.process) ? sandbox.pid : null,
      others: () => processesOf(killTarget(sandbox.folder, sandbox.record, sandbox.descendants), this.#table),
    };
  }

  #register(sandbox: ProcessSandbox): void {
    this.#sandboxes.set(sandbox.id, sandbox);
    if (!sandbox.hasExited) this.#growing.add(sandbox);
  }

  async #end(sandbox: ProcessSandbox): Promise<void> {
    sandbox.setExitReason("the sandbox was destroyed");
    // A frozen program would not see the signal that asks it to end.
    await sandbox.freezing?.thaw().catch(() => undefined);
    await killAll(killTarget(sandbox.folder, sandbox.record, sandbox.descendants), this.#table, this.#options.graceMs);
    sandbox.markExited(null);
    try {
      if (sandbox.record.group !== null) await removeGroup(sandbox.record.group);
      await this.#folders.remove(sandbox.id, sandbox.record);
    } catch (cause) {
      throw new PlatformError("sandbox.destroy_failed", `the files of sandbox '${sandbox.id}' cannot be removed: ${messageOf(cause)}`, {
        cause,
      });
    }
    if (this.#sandboxes.get(sandbox.id) === sandbox) this.#sandboxes.delete(sandbox.id);
  }

  /** Adopts running sandboxes of earlier server processes, and removes what else they left. */
  async #adoptAll(): Promise<void> {
    // Before the records: a record is written before its group is created, and removed after it.
    const groups = this.#groups?.list() ?? [];
    const ids = this.#folders.ids();
    const removals: Promise<void>[] = [this.#folders.removeParts(this.#table)];
    for (const { id, path } of groups) if (!ids.includes(id)) removals.push(endGroup(path));
    for (const id of ids) {
      const held = this.#sandboxes.get(id);
      // An ended sandbox is destroyed by the process that created it, unless that process has ended too.
      if (held !== undefined && (isRunning(this.#table, held.process) || isRunning(this.#table, held.record.maker))) continue;
      if (this.#work.isStarting(id)) continue;
      const folder = this.#folders.folderOf(id);
      const record = this.#folders.find(id);
      if (isAlive(record, this.#table)) {
        const sandbox = this.#openSandbox(folder, record);
        this.#register(sandbox);
        this.#adopted.add(sandbox);
      } else if (record === null || !isRunning(this.#table, record.maker) || (record.isReady && record.maker.pid === this.#self.pid)) {
        // A sandbox of another running process is removed by that process, which may still read why it ended.
        removals.push(this.#clear(folder, record));
      }
    }
    // Sandboxes that another process has removed are dropped here too.
    for (const sandbox of this.#sandboxes.values())
      if (sandbox.hasExited && !existsSync(sandbox.folder.path)) this.#sandboxes.delete(sandbox.id);
    // What cannot be removed now is tried again at the next call.
    await Promise.allSettled(removals);
  }

  async #clear(folder: SandboxFolder, record: SandboxRecord | null): Promise<void> {
    const target = killTarget(folder, record);
    await killAll(target, this.#table, 0);
    if (target.group !== null) await removeGroup(target.group);
    await this.#folders.remove(basename(folder.path), record);
  }

  #checkAlive(sandbox: ProcessSandbox): void {
    if (!isRunning(this.#table, sandbox.process)) sandbox.markExited(null);
  }

  #measure(sandbox: ProcessSandbox): void {
    sandbox.log.trim();
    const { memoryMb, group } = sandbox.record;
    if (group === null) sandbox.updateDescendants(this.#table);
    if (memoryMb === null) return;
    const used = this.#table.memoryMbOf(sandbox.pid) ?? 0;
    if (used <= memoryMb) return;
    sandbox.setExitReason(`the program was ended because it used ${Math.ceil(used)} MB of memory; its limit is ${memoryMb} MB`);
    signalGroup(this.#table, sandbox.process, "SIGKILL");
  }
}

const defaults = { nodeOptions: [], useControlGroups: true, useInit: false, graceMs: 3_000, logBytes: 4 * 1024 * 1024 } as const;

function killTarget(folder: SandboxFolder, record: SandboxRecord | null, known: readonly ProcessIdentity[] = []): KillTarget {
  const id = basename(folder.path);
  const group = record?.group ?? null;
  return {
    id,
    leader: record?.process ?? null,
    marker: record === null ? null : markerOf(folder, record),
    log: folder.log,
    group,
    // A sandbox that was never ready may not have been moved into its group.
    isGrouped: group !== null && record?.isReady === true,
    known,
  };
}

function isAlive(record: SandboxRecord | null, table: ProcessTable): record is SandboxRecord & { process: ProcessIdentity } {
  return record?.isReady === true && record.process !== null && isRunning(table, record.process);
}

function describeTimeout({ record, log }: ProcessSandbox, { startTimeoutMs, listening = APPENDED }: SandboxSpec): string {
  const state =
    record.port !== undefined
      ? `the program did not answer GET ${healthPathOf(listening)} on port ${record.port}`
      : existsSync(record.socket)
        ? "the program listens, but did not answer GET /health"
        : "the program did not listen on its socket";
  const last = log.tail(1)[0];
  return `${state} within ${startTimeoutMs} ms${last === undefined ? "" : `; it last printed: ${last}`}`;
}
