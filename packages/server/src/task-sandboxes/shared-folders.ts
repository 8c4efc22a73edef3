import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Where both containers of an instance see their common folder. */
export const SHARED_PATH = "/shared";

/** Folders of this machine that the two containers of an instance share. Each is named after its instance, so that one that is left is found. */
export class SharedFolders {
  readonly #root: string;

  constructor(home: string) {
    this.#root = join(home, "shared");
  }

  pathOf(instanceId: string): string {
    return join(this.#root, instanceId);
  }

  async create(instanceId: string): Promise<string> {
    // Other users of this machine must not reach what programs of the containers put there.
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const folder = this.pathOf(instanceId);
    await mkdir(folder, { recursive: true });
    // Programs in the containers may run as any user.
    await chmod(folder, 0o1777);
    return folder;
  }

  /** Idempotent. */
  async remove(instanceId: string): Promise<void> {
    await rm(this.pathOf(instanceId), { recursive: true, force: true, maxRetries: 3 });
  }

  /** The instances that have a folder. */
  async list(): Promise<readonly string[]> {
    return readdir(this.#root).catch(() => []);
  }
}
