import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { isPlatformError, PlatformError } from "@aenv/contract";
import type { SandboxSnapshot, SnapshotFidelity } from "../../engine/engine.ts";
import { removeTree } from "../../host/remove-tree.ts";
import type { LayerId, LayerStore } from "../../images/layers.ts";
import { type Container, INIT_PORT, type RootFiles, storedLimits } from "../container.ts";
import { copyRoot, type OverlayRoot, upper } from "../overlay/root.ts";
import type { OciRuntime } from "../runtime/runtime.ts";
import { type UnpackFolderOptions, unpackFolder } from "./archive.ts";
import { outsideConnections } from "./connections.ts";
import { diskBytes, type Filled, type NewSnapshot, type SnapshotStore } from "./store.ts";

export interface Subject {
  readonly container: Container;
  /** As it is now. */
  readonly root: () => OverlayRoot;
  /** Makes its changes a layer without a copy; null if that is not possible. */
  readonly restack: () => Promise<RootFiles | null>;
  readonly runtime: OciRuntime;
  /** The number of its main program in the init. */
  readonly program: number | null;
}

/** To copy less takes no longer than to exchange the root, and each exchange makes the stack of layers higher. */
const WORTH_RESTACKING_BYTES = 8 * 2 ** 20;
const MOST_LAYERS = 64;

const MAX_TABLE_BYTES = 1_000_000;

/** Stores a running sandbox, which goes on afterwards. */
export async function takeSnapshot(
  subject: Subject,
  fidelity: SnapshotFidelity,
  { layers, snapshots, signal }: { readonly layers: LayerStore; readonly snapshots: SnapshotStore; readonly signal: AbortSignal },
): Promise<SandboxSnapshot> {
  const { container } = subject;
  // The runtime's program and the init would wait for a frozen sandbox. It is not frozen again: it may have been continued meanwhile.
  await container.group.thaw();
  if (fidelity === "memory") return takeMemory(subject, snapshots, signal);
  const about = { fidelity, runtime: container.record.runtime, memory: null };
  const { id, bytes } = await snapshots.add(about, (snapshot) =>
    storeFiles(subject, snapshot, layers, { signal, freeDiskBytes: snapshots.freeDiskBytes }),
  );
  return { id, fidelity, bytes };
}

async function takeMemory(subject: Subject, snapshots: SnapshotStore, signal: AbortSignal): Promise<SandboxSnapshot> {
  const { container, runtime, program } = subject;
  const { record } = container;
  const { capabilities = "minimal", initPath } = record;
  if (runtime.checkpoint === undefined)
    throw new PlatformError(
      "sandbox.unsupported",
      `the memory of a sandbox cannot be stored with the runtime ${runtime.name}; use runsc, or store its files`,
    );
  const cut = await connectionsOf(container);
  const memory = { program, ...storedLimits(record), capabilities, initPath, cut };
  const { id, bytes } = await snapshots.add({ fidelity: "memory", runtime: record.runtime, memory }, async ({ memoryFolder }) => {
    await runtime.checkpoint?.(record.id, memoryFolder, signal);
    return { files: record.files, bytes: await diskBytes([memoryFolder]) };
  });
  return { id, fidelity: "memory", bytes, cut };
}

async function storeFiles(
  { container, runtime, ...subject }: Subject,
  { holder, expect }: NewSnapshot,
  layers: LayerStore,
  unpacking: UnpackFolderOptions,
): Promise<Filled> {
  const { record, group } = container;
  const filled = (files: RootFiles, bytes: number): Filled => ({ files, bytes, layerBytes: { [files.layers.at(-1) ?? ""]: bytes } });
  const stored = async (files: RootFiles) =>
    filled(files, await diskBytes([join(layers.folder, layers.filesOf(files.layers.at(-1) ?? ""))]));
  const { writeChanges } = runtime;
  if (writeChanges !== undefined) {
    // The kernel of the sandbox keeps its changes in a file there.
    expect(await diskBytes([upper(subject.root())]));
    const write = (path: string) => writeChanges.call(runtime, record.id, path, unpacking.signal);
    return stored({ ...record.files, layers: await unpackChanges(write, { layers, holder, below: record.files.layers }, unpacking) });
  }
  await group.freeze();
  try {
    const root = subject.root();
    const bytes = await diskBytes([upper(root)]);
    expect(bytes);
    const hasOnlyInit = group.processes().every((pid) => pid === record.process.pid);
    if (hasOnlyInit && bytes >= WORTH_RESTACKING_BYTES && root.layers.length < MOST_LAYERS) {
      const files = await subject.restack();
      if (files !== null) return filled(files, bytes);
    }
    return await stored({ ...record.files, layers: await copyRoot(root, layers, holder) });
  } catch (error) {
    // It could write to the layer.
    if (isPlatformError(error, "sandbox.lost")) await group.kill();
    throw error;
  } finally {
    await group.thaw();
  }
}

/** The archive has the form of overlayfs already: deleted files are devices 0:0. */
async function unpackChanges(
  write: (archive: string) => Promise<void>,
  { layers, holder, below }: { readonly layers: LayerStore; readonly holder: string; readonly below: readonly LayerId[] },
  options: UnpackFolderOptions,
): Promise<readonly LayerId[]> {
  const part = await layers.temporaryFolder();
  try {
    const [archive, files] = [join(part, "changes.tar"), join(part, "files")];
    await write(archive);
    await mkdir(files);
    await unpackFolder(archive, files, options);
    return await layers.adopt(files, holder, below);
  } finally {
    await removeTree(part);
  }
}

/** Connections that a copy does not have. */
async function connectionsOf({ init }: Container): Promise<readonly string[]> {
  const read = (path: string) => init.files.read({ path, length: MAX_TABLE_BYTES }).catch(() => Buffer.alloc(0));
  const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map(read));
  return outsideConnections(
    tables.map((table) => table.toString("latin1")),
    new Set([INIT_PORT]),
  );
}
