import type { Resources } from "@aenv/contract";
import type { FolderMount, Sandbox } from "@aenv/sandbox";
import type { TaskSandboxPolicy } from "./policy.ts";
import { SandboxRequests, type SandboxRequestsOptions } from "./requests.ts";
import { SHARED_PATH, type SharedFolders } from "./shared-folders.ts";
import { TaskSandboxes, type TaskSandboxesOptions } from "./task-sandboxes.ts";

export interface TaskResourcesOptions extends TaskSandboxesOptions, Omit<SandboxRequestsOptions, "sandboxes"> {}

/** Rounds of maintenance between two checks of whether the instances of all sandboxes still live. */
const CHECK_EVERY = 20;

/** All that belongs to the sandboxes of environment code: the sandboxes, the requests about them, the shared folders. */
export class TaskResources {
  readonly sandboxes: TaskSandboxes;
  readonly requests: SandboxRequests;
  readonly #folders: SharedFolders;
  #rounds = 0;

  constructor(options: TaskResourcesOptions) {
    this.sandboxes = new TaskSandboxes(options);
    this.#folders = options.sharedFolders;
    this.requests = new SandboxRequests({ ...options, sandboxes: this.sandboxes });
  }

  /** Commands that the code of an instance runs in this sandbox. */
  ownCommands(sandboxId: string): ReadonlySet<number> {
    return this.requests.ownCommands(sandboxId);
  }

  /**
   * The folders that the sandbox of an instance has in common with its second container; undefined if there are none. They are limited like the files
   * of the sandbox (`diskMb`), or of the second container.
   */
  async createFolders(
    instanceId: string,
    policy: TaskSandboxPolicy | undefined,
    { diskMb }: Resources,
  ): Promise<readonly FolderMount[] | undefined> {
    if (policy?.hasSharedFolder !== true) return undefined;
    const source = await this.#folders.create(instanceId, diskMb ?? policy.diskMb);
    return [{ source, target: SHARED_PATH, isReadOnly: false }];
  }

  /** Removes all of an instance that has ended. Its own sandbox is gone already, and writes to the folder no more. Never fails. */
  async release(instanceId: string): Promise<void> {
    await this.sandboxes.release(instanceId);
    await this.#folders.remove(instanceId).catch(() => {});
  }

  /** The same for the instances of a process that has ended. */
  async releaseHost(hostId: string, instanceIds: readonly string[]): Promise<void> {
    await this.sandboxes.releaseHost(hostId);
    for (const id of instanceIds) await this.release(id);
  }

  /** Takes over a sandbox that a dead server has left. */
  adopt(sandbox: Sandbox): void {
    sandbox.shared?.takeOver();
    this.sandboxes.adopt(sandbox);
  }

  async tidy(): Promise<void> {
    await this.sandboxes.retry();
    if (++this.#rounds % CHECK_EVERY === 0) await this.collect();
  }

  /** Removes what belongs to instances that have ended. */
  async collect(): Promise<void> {
    await this.sandboxes.collect();
    for (const id of await this.#folders.list()) if (!(await this.sandboxes.isLive(id))) await this.#folders.remove(id).catch(() => {});
  }

  async close(): Promise<void> {
    await this.sandboxes.close();
  }
}
