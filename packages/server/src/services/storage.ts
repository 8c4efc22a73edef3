import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Folders that outlive the replicas of services; those of one owner share them by name. */
export class Storage {
  readonly #root: string;

  constructor(home: string) {
    this.#root = join(home, "storage");
  }

  async open(owner: string, name: string): Promise<string> {
    const folder = this.#folder(owner, name);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  async remove(owner: string, name: string): Promise<void> {
    await rm(this.#folder(owner, name), { recursive: true, force: true });
  }

  /** Names are checked when they come in; an owner may be called anything. */
  #folder(owner: string, name: string): string {
    return join(this.#root, `o-${encodeURIComponent(owner).replaceAll(".", "%2E")}`, name);
  }
}
