import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { unmount } from "../overlay/mount.ts";
import { CommandRuntime, type CommandRuntimeOptions } from "./command-runtime.ts";
import { containerId } from "./records.ts";
import type { OciRuntime, RunOptions, StartedSandbox } from "./runtime.ts";

/** Options on which nothing in a checkpoint depends. */
const NOT_STORED = /^--(?:root|log|gofer-network-namespace|shared-root|host-settings)\b/;
/** The file on which runsc mounts the network namespace that the processes share which serve files. */
const SHARED_NAMESPACE = "null-netns";
/** Also when the caller has cancelled. */
const RESUME_MS = 30_000;

/** gVisor: its kernel can store a sandbox with its processes, and continue it elsewhere. */
export class RunscRuntime extends CommandRuntime implements Required<OciRuntime> {
  readonly checkpointFormat: string;
  readonly #sharedFolder: string | undefined;

  constructor(options: CommandRuntimeOptions & { readonly version: string }) {
    super(options);
    this.#sharedFolder = options.sharedFolder;
    const flags = options.dialect.options({ root: "", errorsPath: "" }).filter((flag) => !NOT_STORED.test(flag));
    this.checkpointFormat = [options.version, ...flags].join(" ");
  }

  async checkpoint(id: string, folder: string, signal: AbortSignal): Promise<void> {
    await mkdir(folder, { mode: 0o700 });
    try {
      const args = ["checkpoint", "-image-path", folder, "-leave-running"];
      await this.call(id, args, `the memory of sandbox ${id} could not be stored`, signal);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  prepare(id: string, bundle: string, options: RunOptions): Promise<StartedSandbox> {
    return this.start(id, bundle, options, `sandbox ${id} could not be prepared`, ["create"]);
  }

  startPrepared(id: string, signal: AbortSignal): Promise<void> {
    return this.call(id, ["start"], `sandbox ${id} could not be started`, signal);
  }

  async restore(id: string, bundle: string, folder: string, options: RunOptions): Promise<StartedSandbox> {
    const problem = `sandbox ${id} could not be restored`;
    const from = ["restore", "-image-path", folder, "-detach"];
    const prepared = await this.processOf(id);
    if (prepared === null) return this.start(id, bundle, options, problem, from);
    await this.call(id, [...from, "-bundle", bundle], problem, options.signal);
    return prepared;
  }

  protected override async start(...given: Parameters<CommandRuntime["start"]>): Promise<StartedSandbox> {
    const [id] = given;
    // Every user can enter it, because roots of sandboxes with their own users are in it too.
    if (this.#sharedFolder !== undefined) await mkdir(this.#sharedFolder, { recursive: true, mode: 0o711 });
    const started = await super.start(...given);
    const fileServerPid = await this.#fileServerOf(id);
    return { ...started, ...(fileServerPid !== null && { fileServerPid }) };
  }

  /** As runsc itself has written it down; null if a version of it does not. */
  async #fileServerOf(id: string): Promise<number | null> {
    const name = containerId(id);
    const text = await readFile(join(this.stateFolder, `${name}_sandbox:${name}.state`), "utf8").catch(() => "{}");
    const { goferPid } = JSON.parse(text) as { readonly goferPid?: unknown };
    return typeof goferPid === "number" && goferPid > 0 ? goferPid : null;
  }

  /** The processes wait meanwhile, so that the files are those of one moment. */
  async writeChanges(id: string, archive: string, signal: AbortSignal): Promise<void> {
    const problem = `the files of sandbox ${id} could not be read`;
    await this.call(id, ["pause"], problem, signal);
    try {
      await this.call(id, ["tar", "rootfs-upper", "-file", archive], problem, signal);
    } finally {
      await this.call(id, ["resume"], problem, AbortSignal.timeout(RESUME_MS));
    }
  }
}

/** Removes what sandboxes of runsc share. Those that run keep it, and the next one creates it again. */
export async function removeShared(folder: string): Promise<void> {
  const path = join(folder, SHARED_NAMESPACE);
  await unmount(path);
  await rm(path, { force: true });
}
