import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxEngine } from "@aenv/sandbox";

/** Where both containers of an instance see their common folder. */
export const SHARED_PATH = "/shared";

/**
 * Folders of this machine that the two containers of an instance share. Each is named after its instance, and so is the file system of one that
 * has a limit, so that one that is left is found.
 */
export class SharedFolders {
  readonly #root: string;
  readonly #disks: string;
  readonly #engine: Pick<SandboxEngine, "disks">;

  constructor(home: string, engine: Pick<SandboxEngine, "disks">) {
    this.#root = join(home, "shared");
    this.#disks = join(home, "shared-disks");
    this.#engine = engine;
  }

  pathOf(instanceId: string): string {
    return join(this.#root, instanceId);
  }

  /** With `diskMb`, it can hold so much, if the engine can limit folders. */
  async create(instanceId: string, diskMb: number | undefined): Promise<string> {
    // Other users of this machine must not reach what programs of the containers put there.
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const folder = this.pathOf(instanceId);
    await mkdir(folder, { recursive: true });
    try {
      if (diskMb !== undefined && this.#engine.disks !== undefined) {
        await mkdir(this.#disks, { recursive: true, mode: 0o700 });
        await this.#engine.disks.mount(this.#diskOf(instanceId), folder, diskMb);
        // Made by mkfs. Nobody repairs this file system.
        await rm(join(folder, "lost+found"), { recursive: true, force: true });
      }
      // Programs in the containers may run as any user.
      await chmod(folder, 0o1777);
      return folder;
    } catch (error) {
      await this.remove(instanceId);
      throw error;
    }
  }

  /** Idempotent. */
  async remove(instanceId: string): Promise<void> {
    const folder = this.pathOf(instanceId);
    await this.#engine.disks?.unmount(folder);
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    await rm(this.#diskOf(instanceId), { force: true });
  }

  /** The instances that have a folder, or something that is left of one. */
  async list(): Promise<readonly string[]> {
    const names = await Promise.all([this.#root, this.#disks].map((folder) => readdir(folder).catch(() => [])));
    return [...new Set(names.flat())];
  }

  #diskOf(instanceId: string): string {
    return join(this.#disks, instanceId);
  }
}
