import { join } from "node:path";
import { type CapabilitySet, isPlatformError } from "@aenv/contract";
import type { SandboxRuntime } from "../engine/engine.ts";
import type { LayerStore } from "../images/layers.ts";
import type { SandboxNetwork } from "../network/held-network.ts";
import { namespacePath } from "../network/namespaces.ts";
import { assertCapabilities, type CapabilityLimit } from "../spec/capabilities.ts";
import type { SandboxMount } from "../spec/mounts.ts";
import { type ContainerRecord, mappedFolder } from "./container.ts";
import { generationFile, networkFiles } from "./container-connection.ts";
import { findMapProblem, type RootUser } from "./overlay/mapped.ts";
import { mountRoot, type OverlayRoot, prepareRoot, type RootContent, removeRoot, replaceRoot } from "./overlay/root.ts";

export interface ContainerRootsOptions {
  /** The folder of the engine. */
  readonly folder: string;
  readonly homeKey: string;
  /** The folder of a container. */
  readonly folderOf: (id: string) => string;
  readonly layers: LayerStore;
  /** `own`: users of sandboxes with runc are not those of the machine, if its kernel can translate the owners of files. */
  readonly users: "own" | "machine";
  readonly capabilityLimit: CapabilityLimit;
  /** Receives what the operator should know. */
  readonly log?: ((line: string) => void) | undefined;
}

/** The root file systems of containers, and whose users their users are. */
export class ContainerRoots {
  readonly #options: ContainerRootsOptions;
  #mapProblem: Promise<string | null> | undefined;
  #hasWarnedOfMounts = false;

  constructor(options: ContainerRootsOptions) {
    this.#options = options;
  }

  of(record: ContainerRecord): OverlayRoot {
    const { id, storage, users } = record;
    const mapped = users == null ? null : { ...users, path: join(mappedFolder(this.#options.homeKey), id) };
    const folder = join(this.#options.folderOf(id), "root");
    return { folder, layers: record.files.layers, storage, mapped, setsUserIds: setsUserIds(record) };
  }

  /** Throws if sandboxes with this runtime may not have these capabilities here. */
  assertCapabilities(runtime: SandboxRuntime, capabilities: CapabilitySet | undefined): Promise<void> {
    return assertCapabilities(capabilities, this.#options.capabilityLimit, () => this.findMapProblem(runtime));
  }

  /** Why users of sandboxes are those of the machine; null if they are not. */
  async findMapProblem(runtime: SandboxRuntime): Promise<string | null> {
    // Its users are those of gVisor's kernel.
    if (runtime === "runsc") return null;
    const { users, folder, layers } = this.#options;
    if (users === "machine") return "its setting sandboxUsers is 'machine'";
    this.#mapProblem ??= findMapProblem(folder, layers.folder).then((problem) => {
      if (problem !== null)
        this.#warn(`users of sandboxes with runc are users of this machine, and root is root behind all other walls: ${problem}`);
      return problem;
    });
    return this.#mapProblem;
  }

  /** Returns what the start mounts, if the mount is left to it. The root is without users of its own, if the file system of a mounted folder cannot translate owners. */
  async prepare(
    record: ContainerRecord,
    mounts: readonly SandboxMount[],
    network: SandboxNetwork,
    unmapped: () => Promise<ContainerRecord>,
  ): Promise<object | undefined> {
    const { layers } = this.#options;
    const root = this.of(record);
    const plain: RootContent = { ...this.#contentOf(record, network), network: null, binds: [] };
    if (record.users == null) return prepareRoot(root, layers, plain);
    const binds = [...(record.files.mounts ?? []), ...mounts].flatMap((mount) => (mount.kind === "bind" ? [mount] : []));
    const content = { ...plain, network: namespacePath(network.name), binds };
    // Saves the start of a process.
    if (binds.length === 0) return prepareRoot(root, layers, content);
    try {
      await mountRoot(root, layers, content);
    } catch (error) {
      if (!isPlatformError(error, "sandbox.unsupported")) throw error;
      await assertCapabilities(record.capabilities, this.#options.capabilityLimit, async () => error.message);
      await removeRoot(root);
      const folders = binds.map(({ source }) => source).join(", ");
      if (!this.#hasWarnedOfMounts)
        this.#warn(`users of sandboxes with a mounted folder (${folders}) are users of this machine, and root is root: ${error.message}`);
      this.#hasWarnedOfMounts = true;
      await mountRoot(this.of(await unmapped()), layers, plain);
    }
    return undefined;
  }

  /** Exchanges the root of a container without files, in which nothing was started yet. */
  async replace(record: ContainerRecord, network: SandboxNetwork, user: RootUser): Promise<boolean> {
    const { layers } = this.#options;
    return replaceRoot(this.of(record), layers, user, this.#contentOf(record, network));
  }

  #contentOf({ id, runtime }: ContainerRecord, network: SandboxNetwork) {
    const hasMemory = runtime === "runsc";
    return { files: [...networkFiles(id, network), ...(hasMemory ? [generationFile(0)] : [])], keepsTemporary: hasMemory };
  }

  #warn(problem: string): void {
    this.#options.log?.(`${problem}. For users of their own, use Linux 5.19 or newer with ext4, XFS or btrfs, or the runtime runsc`);
  }
}

/** Whether set-user-id programs change the user. */
export function setsUserIds({ capabilities = "minimal" }: ContainerRecord): boolean {
  return capabilities !== "minimal";
}
