import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Persistent folders of services. Services of one owner share a folder by name. */
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

  /** Storage names were validated in the request; owners are escaped here. */
  #folder(owner: string, name: string): string {
    return join(this.#root, `o-${encodeURIComponent(owner).replaceAll(".", "%2E")}`, name);
  }
}
