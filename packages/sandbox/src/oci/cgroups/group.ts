import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { messageOf, PlatformError } from "@aenv/contract";
import { processesIn, removeGroup } from "../../host/control-groups.ts";
import type { GroupLimits } from "../../spec/limits.ts";
import { foldersOf, type Hierarchy, parseHierarchy, usedFoldersOf } from "./hierarchy.ts";
import { type Setting, settingsOf } from "./settings.ts";

/** What a group has used since it was created; null where the machine does not report it. */
export interface GroupUsage {
  readonly memoryBytes: number | null;
  readonly processes: number | null;
  readonly cpuMs: number | null;
  /** How many processes the kernel killed because of the memory limit. */
  readonly outOfMemoryKills: number | null;
  /** How often a process or thread could not be started because of their limit. */
  readonly processLimitHits: number | null;
}

const FREEZE_TIMEOUT_MS = 5_000;
const KILL_TIMEOUT_MS = 10_000;

/** The trees of control groups of this machine. */
export async function findHierarchy(): Promise<Hierarchy> {
  const hierarchy = parseHierarchy(await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
  if (hierarchy === null)
    throw new PlatformError(
      "sandbox.unsupported",
      "this machine has no control groups mounted; oci sandboxes need Linux with /sys/fs/cgroup",
    );
  return hierarchy;
}

/** The control group of one sandbox, in all trees. It need not exist. */
export class ControlGroup {
  readonly path: string;
  readonly #hierarchy: Hierarchy;

  /** `path` is below the root of each tree, such as `/aenv/one`. All processes of the group it names may be killed. */
  constructor(hierarchy: Hierarchy, path: string) {
    if (!/^(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*){2,}$/.test(path))
      throw new PlatformError("request.invalid", `'${path}' is not the path of a sandbox's control group, such as /aenv/one`);
    this.path = path;
    this.#hierarchy = hierarchy;
  }

  /** Creates the group with these limits. Throws `sandbox.unsupported` if one cannot be set; the group is then removed. */
  async create(limits: GroupLimits): Promise<void> {
    const settings = settingsOf(limits, this.#hierarchy.version);
    try {
      // Not through the thread pool, and neither are the settings: they are in memory, and each would take longer to hand over than to write.
      for (const folder of usedFoldersOf(this.#hierarchy, this.path)) mkdirSync(folder, { recursive: true });
      if (this.#hierarchy.version === 2) {
        await this.#enable(new Set(settings.map(({ controller }) => controller)));
        // Not a limit: with it, groups share the processors evenly, however many processes one has.
        await this.#enable(new Set(["cpu"])).catch(() => undefined);
      }
      for (const setting of settings) this.#set(setting);
    } catch (error) {
      await this.remove();
      throw error;
    }
  }

  /** Moves a process into the group, before it starts others. */
  async join(pid: number): Promise<void> {
    for (const folder of usedFoldersOf(this.#hierarchy, this.path)) await writeFile(join(folder, "cgroup.procs"), String(pid));
  }

  processes(): number[] {
    return [...new Set(this.#folders().flatMap(processesIn))];
  }

  /** Stops all processes of the group from running, and resolves when they have stopped. */
  async freeze(): Promise<void> {
    await this.#writeFreezer(true);
    const deadline = Date.now() + FREEZE_TIMEOUT_MS;
    for (let pauseMs = 1; !(await this.isFrozen()); pauseMs = Math.min(50, pauseMs * 2)) {
      if (Date.now() > deadline) {
        await this.thaw();
        throw new PlatformError(
          "sandbox.lost",
          `control group ${this.path} did not freeze within ${FREEZE_TIMEOUT_MS / 1_000} seconds; it runs again`,
        );
      }
      await setTimeout(pauseMs);
    }
  }

  async thaw(): Promise<void> {
    await this.#writeFreezer(false);
  }

  async isFrozen(): Promise<boolean> {
    if (this.#hierarchy.version === 2) return /^frozen 1$/m.test(await this.#read(this.#hierarchy.mount, "cgroup.events"));
    return (await this.#read(this.#controller("freezer"), "freezer.state")).trim() === "FROZEN";
  }

  /** Kills all processes of the group and waits until they have ended. No-op if it does not exist. */
  async kill(): Promise<void> {
    const deadline = Date.now() + KILL_TIMEOUT_MS;
    for (let pauseMs = 1; ; pauseMs = Math.min(50, pauseMs * 2)) {
      if (this.processes().length === 0) return;
      await this.#killOnce();
      if (Date.now() > deadline)
        throw new PlatformError(
          "sandbox.destroy_failed",
          `processes ${this.processes().join(", ")} of control group ${this.path} do not end`,
        );
      await setTimeout(pauseMs);
    }
  }

  /** Removes the group, whose processes have ended. No-op if it does not exist. */
  async remove(): Promise<void> {
    await Promise.all(this.#folders().map(removeGroup));
  }

  async usage(): Promise<GroupUsage> {
    const isV2 = this.#hierarchy.version === 2;
    const read = (controller: string, file: string) => this.#read(this.#controller(controller), file).catch(() => "");
    const [memory, processes, cpu, events, processEvents] = await Promise.all([
      read("memory", isV2 ? "memory.current" : "memory.usage_in_bytes"),
      read("pids", "pids.current"),
      isV2 ? read("cpu", "cpu.stat") : read("cpuacct", "cpuacct.usage"),
      read("memory", isV2 ? "memory.events" : "memory.oom_control"),
      read("pids", "pids.events"),
    ]);
    return {
      memoryBytes: number(memory),
      processes: number(processes),
      cpuMs: isV2 ? scaled(number(/^usage_usec (\d+)$/m.exec(cpu)?.[1]), 1e3) : scaled(number(cpu), 1e6),
      outOfMemoryKills: number(/^oom_kill (\d+)$/m.exec(events)?.[1]),
      processLimitHits: number(/^max (\d+)$/m.exec(processEvents)?.[1]),
    };
  }

  async #killOnce(): Promise<void> {
    // Linux 5.14 and later kill a whole group. Otherwise: frozen processes cannot start others while they are killed one by one.
    if (this.#hierarchy.version === 2) {
      const isKilled = await writeFile(join(this.#hierarchy.mount, this.path, "cgroup.kill"), "1").then(
        () => true,
        () => false,
      );
      if (isKilled) return;
    }
    await this.#writeFreezer(true).catch(() => {});
    for (const pid of this.processes()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {}
    }
    // Version 1 ends a killed process only after it has thawed.
    await this.thaw().catch(() => {});
  }

  async #writeFreezer(isFrozen: boolean): Promise<void> {
    const [root, file, value] =
      this.#hierarchy.version === 2
        ? [this.#hierarchy.mount, "cgroup.freeze", isFrozen ? "1" : "0"]
        : [this.#controller("freezer"), "freezer.state", isFrozen ? "FROZEN" : "THAWED"];
    await writeFile(join(root, this.path, file), value);
  }

  #set({ controller, file, value, isForSwap = false }: Setting): void {
    const path = join(this.#controller(controller), this.path, file);
    if (isForSwap && !existsSync(path) && !hasSwap()) return;
    try {
      writeFileSync(path, value);
    } catch (cause) {
      throw new PlatformError("sandbox.unsupported", `the ${controller} limit cannot be set: writing ${value} to ${path} failed`, {
        cause,
      });
    }
  }

  /** A group of version 2 has only those controllers that all groups above it pass on. */
  async #enable(controllers: ReadonlySet<string>): Promise<void> {
    if (this.#hierarchy.version !== 2 || controllers.size === 0) return;
    const parents: string[] = [];
    for (let parent = dirname(this.path); ; parent = dirname(parent)) {
      parents.unshift(parent);
      if (parent === "/") break;
    }
    for (const parent of parents) {
      const file = join(this.#hierarchy.mount, parent, "cgroup.subtree_control");
      const enabled = (await readFile(file, "utf8").catch(() => "")).split(/\s/);
      const value = [...controllers].flatMap((name) => (enabled.includes(name) ? [] : `+${name}`)).join(" ");
      // The groups above that of the server may not be writable, and need no change then.
      if (value === "") continue;
      await writeFile(file, value).catch((cause) => {
        throw new PlatformError(
          "sandbox.unsupported",
          `limits cannot be set: writing '${value}' to ${file} failed (${messageOf(cause)}). ${adviceFor(cause)}`,
          { cause },
        );
      });
    }
  }

  #controller(name: string): string {
    if (this.#hierarchy.version === 2) return this.#hierarchy.mount;
    const mount = this.#hierarchy.controllers[name];
    if (mount === undefined)
      throw new PlatformError("sandbox.unsupported", `this machine has no control group controller '${name}' mounted`);
    return mount;
  }

  #folders(): readonly string[] {
    return foldersOf(this.#hierarchy, this.path);
  }

  #read(root: string, file: string): Promise<string> {
    return readFile(join(root, this.path, file), "utf8");
  }
}

function hasSwap(): boolean {
  return existsSync("/proc/swaps") && readFileSync("/proc/swaps", "utf8").trim().split("\n").length > 1;
}

function number(text: string | undefined): number | null {
  const value = Number.parseInt(text ?? "", 10);
  return Number.isNaN(value) ? null : value;
}

function scaled(value: number | null, by: number): number | null {
  return value === null ? null : Math.round(value / by);
}

/** Groups of sandboxes are at the top of the tree, not in the group of the server. */
function adviceFor({ code }: NodeJS.ErrnoException): string {
  switch (code) {
    case "EBUSY":
      return "Processes are in the topmost group that this process sees: start the server with the control groups of the machine, in a container with --cgroupns host";
    case "ENOENT":
      return "The tree does not have these controllers: remove them from the option cgroup_disable of the kernel, and from those of version 1";
    default:
      return "The server needs to be root and to write to the control groups of the machine: in a container, mount its /sys/fs/cgroup writable, with --cgroupns host";
  }
}
