import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { SandboxSnapshot, SnapshotFidelity } from "../../engine.ts";
import { type Container, INIT_PORT, type RootFiles } from "../containers.ts";
import type { LayerId, LayerStore } from "../images/layers.ts";
import { type OverlayRoot, snapshotRoot } from "../overlay/root.ts";
import type { OciRuntime } from "../runtime/runtime.ts";
import { unpackFolder } from "./archive.ts";
import { outsideConnections } from "./connections.ts";
import { diskBytes, type SnapshotStore } from "./store.ts";

export interface Subject {
  readonly container: Container;
  readonly root: OverlayRoot;
  readonly runtime: OciRuntime;
  /** The number of its main program in the init. */
  readonly program: number | null;
  readonly diskMb: number | null;
  readonly initPath: string;
}

const MAX_TABLE_BYTES = 1_000_000;

/** Stores a running sandbox, which goes on afterwards. */
export async function takeSnapshot(
  subject: Subject,
  fidelity: SnapshotFidelity,
  { layers, snapshots, signal }: { readonly layers: LayerStore; readonly snapshots: SnapshotStore; readonly signal: AbortSignal },
): Promise<SandboxSnapshot> {
  const { container } = subject;
  const { group } = container;
  const wasFrozen = await group.isFrozen();
  // The runtime's program and the init would wait for a frozen sandbox.
  if (wasFrozen) await group.thaw();
  try {
    if (fidelity === "files") {
      const about = { fidelity, runtime: container.record.runtime, memory: null };
      const { id, bytes } = await snapshots.add(about, async () => {
        const files = await storeFiles(subject, layers, signal);
        return { files, bytes: await diskBytes([join(layers.folder, layers.filesOf(files.layers.at(-1) ?? ""))]) };
      });
      return { id, fidelity, bytes };
    }
    return await takeMemory(subject, snapshots, signal);
  } finally {
    if (wasFrozen) await group.freeze();
  }
}

async function takeMemory(subject: Subject, snapshots: SnapshotStore, signal: AbortSignal): Promise<SandboxSnapshot> {
  const { container, runtime, program, diskMb, initPath } = subject;
  const { record } = container;
  if (runtime.checkpoint === undefined)
    throw new PlatformError(
      "sandbox.unsupported",
      `the memory of a sandbox cannot be stored with the runtime ${runtime.name}; use runsc, or store its files`,
    );
  const cut = await connectionsOf(container);
  const memory = { program, diskMb, initPath, cut };
  const { id, bytes } = await snapshots.add({ fidelity: "memory", runtime: record.runtime, memory }, async (folder) => {
    await runtime.checkpoint?.(record.id, folder, signal);
    return { files: record.files, bytes: await diskBytes([folder]) };
  });
  return { id, fidelity: "memory", bytes, cut };
}

async function storeFiles({ container, root, runtime }: Subject, layers: LayerStore, signal: AbortSignal): Promise<RootFiles> {
  const { record, group } = container;
  const { writeChanges } = runtime;
  if (writeChanges !== undefined) {
    const archive = (path: string) => writeChanges.call(runtime, record.id, path, signal);
    return { ...record.files, layers: [...record.files.layers, await unpackChanges(archive, layers, signal)] };
  }
  await group.freeze();
  try {
    return { ...record.files, layers: (await snapshotRoot(root, layers, "frozen")).layers };
  } finally {
    await group.thaw();
  }
}

/** The archive has the form of overlayfs already: deleted files are devices 0:0. */
async function unpackChanges(write: (archive: string) => Promise<void>, layers: LayerStore, signal: AbortSignal): Promise<LayerId> {
  const part = await layers.temporaryFolder();
  try {
    const [archive, files] = [join(part, "changes.tar"), join(part, "files")];
    await write(archive);
    await mkdir(files);
    await unpackFolder(archive, files, signal);
    return await layers.adopt(files);
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}

/** Connections that a copy does not have. */
async function connectionsOf({ init }: Container): Promise<readonly string[]> {
  const table = await init.files.read({ path: "/proc/net/tcp", length: MAX_TABLE_BYTES }).catch(() => null);
  if (table === null) return [];
  return outsideConnections(table.toString("latin1"), new Set([INIT_PORT]));
}
