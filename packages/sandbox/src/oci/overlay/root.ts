import { chmodSync, chownSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isPlatformError, PlatformError } from "@aenv/contract";
import { removeTree } from "../../host/remove-tree.ts";
import type { LayerId, LayerStore } from "../../images/layers.ts";
import { checkSize, mountDisk } from "./disk.ts";
import {
  type Bind,
  type MappedMount,
  mountMapped,
  type RootFile,
  type RootUser,
  requestOf,
  restackMapped,
  type UserMapping,
} from "./mapped.ts";
import { checkMountPath, mount, run, unmount } from "./mount.ts";

/** Where the changes of a sandbox are stored. Only `folder` has no limit, and only its snapshots need no copy. */
export type UpperStorage =
  | { readonly kind: "folder" }
  /** A file system in a file, which grows up to this size. */
  | { readonly kind: "disk"; readonly sizeMb: number }
  /** Memory, which counts as memory of the sandbox. */
  | { readonly kind: "memory"; readonly sizeMb: number };

/** The root file system of a sandbox: layers that it shares, and a folder for its own changes. */
export interface OverlayRoot {
  /** Its own folder. */
  readonly folder: string;
  /** Layers from the lowest to the highest. */
  readonly layers: readonly LayerId[];
  readonly storage: UpperStorage;
  /** Its users are not those of the machine; null if they are. */
  readonly mapped?: MappedRoot | null;
  /** Set-user-id programs change the user, if the launcher mounts it. */
  readonly setsUserIds?: boolean;
}

export interface MappedRoot extends UserMapping {
  /** Where it is mounted: root of the sandbox must be able to get there, which is not the case in a private folder. */
  readonly path: string;
}

/** What a root contains besides its layers and changes, if the launcher mounts it. */
export interface RootContent {
  /** The network namespace of which it has the /sys: a user namespace may not mount that itself. */
  readonly network: string | null;
  /** Mounts of a root with its own users: others are mounted by the runtime. */
  readonly binds: readonly Bind[];
  readonly files: readonly RootFile[];
  /** Needed by gVisor, which hides an empty /tmp: what is there later would be missing in a snapshot of files. */
  readonly keepsTemporary: boolean;
}

const MACHINE_USERS: UserMapping = { hostId: 0, size: 0 };

/** What a root contains that takes the place of another one. Other mounts are kept. */
export type ReplacedContent = Partial<Pick<RootContent, "files" | "keepsTemporary">>;

const OVERLAY_OPTIONS = [
  // Attributes that depend on other layers would make a snapshot unusable elsewhere.
  "index=off",
  "metacopy=off",
  "redirect_dir=off",
  // No data of a sandbox has to survive a crash of the machine, so nothing waits for the disk.
  "volatile",
];

/** Where the root is mounted. */
export function rootPath({ folder, mapped }: OverlayRoot): string {
  return mapped?.path ?? join(folder, "root");
}

/** Mounts the root; the caller has called `store.use` for its layers. If it fails, nothing is left mounted. A root with `content` is mounted by the launcher; one with its own users must have it. */
export async function mountRoot(root: OverlayRoot, store: LayerStore, content?: RootContent): Promise<void> {
  await whole(root, () => (content === undefined ? mountOverlay(root, store) : mountMapped(mappedMount(root, store, content))));
}

/** Does all but the mount of the overlay itself; the launcher does that when it is given what is returned. */
export function prepareRoot(root: OverlayRoot, store: LayerStore, content: RootContent): Promise<object> {
  return whole(root, async () => requestOf(mappedMount(root, store, content)));
}

/** If it fails, nothing is left mounted. */
async function whole<T>(root: OverlayRoot, mountOn: () => Promise<T>): Promise<T> {
  checkMountPath(root.folder);
  // Not through the thread pool, here and below: each folder would take longer to hand over than to create.
  mkdirSync(rootPath(root), { recursive: true, mode: 0o711 });
  try {
    await mountStorage(root);
    createFolders(root);
    return await mountOn();
  } catch (error) {
    await unmountRoot(root);
    throw error;
  }
}

/** Idempotent. The changes are kept, except those in memory. */
export async function unmountRoot(root: OverlayRoot): Promise<void> {
  await unmount(rootPath(root), root.mapped != null);
  await unmount(changes(root));
}

/** Unmounts the root and deletes its changes. Idempotent. */
export async function removeRoot(root: OverlayRoot): Promise<void> {
  await unmountRoot(root);
  if (root.mapped != null) await rmdir(root.mapped.path).catch(() => undefined);
  await removeTree(root.folder);
}

/**
 * Makes the changes of a root a new layer. All processes of the sandbox must be frozen or ended. It goes on afterwards, and its mount keeps
 * writing to the folder with the changes, whatever the folder's name is. So the layer is a copy, which shares blocks with the original if the
 * file system supports that. Returns all layers, from the lowest to the highest, which `holder` uses.
 */
export async function copyRoot(root: OverlayRoot, store: LayerStore, holder: string): Promise<readonly LayerId[]> {
  const part = await store.temporaryFolder();
  try {
    await run("cp", ["--archive", "--reflink=auto", upper(root), join(part, "files")], `the changes in ${root.folder} could not be copied`);
    return await store.adopt(join(part, "files"), holder, root.layers);
  } finally {
    await removeTree(part);
  }
}

/**
 * Makes the changes of a root a new layer without a copy, while the sandbox goes on: it is frozen, and `pid`, its init, is its only process. The
 * process gets a root with a new folder for changes above the layer. Returns its layers, which `holder` uses. Null if that is not possible here,
 * or if the process has opened files of its root: then nothing has changed. A failure in the middle is `sandbox.lost`.
 */
export async function restackRoot(
  root: OverlayRoot,
  store: LayerStore,
  { pid, holder }: { readonly pid: number; readonly holder: string },
): Promise<readonly LayerId[] | null> {
  if (!(await exchangeRoot(root, [upper(root), ...lowerOf(root, store)], { pid, isFileServer: false }, {}))) return null;
  await unmount(rootPath(root), root.mapped != null);
  const layers = await store.adopt(upper(root), holder, root.layers);
  rmSync(changes(root), { recursive: true, force: true });
  renameSync(nextChanges(root), changes(root));
  return layers;
}

/**
 * Gives a sandbox the layers of `root`, and no changes. It has nothing to do. False if that is not possible here: then nothing has changed. A
 * failure in the middle is `sandbox.lost`. The former root is unmounted and deleted afterwards; `removeRoot` does the same if that is
 * interrupted.
 */
export async function replaceRoot(root: OverlayRoot, store: LayerStore, user: RootUser, content: ReplacedContent): Promise<boolean> {
  if (!(await exchangeRoot(root, lowerOf(root, store), user, content))) return false;
  const former = join(root.folder, "former");
  renameSync(changes(root), former);
  renameSync(nextChanges(root), changes(root));
  // Nobody waits for it.
  void unmount(rootPath(root), root.mapped != null)
    .then(() => removeTree(former))
    .catch(() => undefined);
  return true;
}

/** Exchanges the root of a sandbox for an overlay of these folders, the highest first, and a new folder for changes. */
async function exchangeRoot(root: OverlayRoot, lower: readonly string[], user: RootUser, content: ReplacedContent): Promise<boolean> {
  if (root.storage.kind !== "folder") return false;
  const { hostId, size } = root.mapped ?? MACHINE_USERS;
  const next = nextChanges(root);
  rmSync(next, { recursive: true, force: true });
  for (const name of ["upper", "work"]) mkdirSync(join(next, name), { recursive: true });
  // The root folder of the sandbox is that of its changes.
  const { mode, uid, gid } = statSync(upper(root));
  chownSync(join(next, "upper"), uid, gid);
  chmodSync(join(next, "upper"), mode & 0o7777);
  try {
    await restackMapped({ ...overlayOf(root), lower, changes: next, users: { hostId, size }, ...content }, user);
    return true;
  } catch (error) {
    rmSync(next, { recursive: true, force: true });
    if (isPlatformError(error, "sandbox.unsupported", "sandbox.start_failed")) return false;
    throw error;
  }
}

async function mountStorage(root: OverlayRoot): Promise<void> {
  const { storage } = root;
  const target = changes(root);
  mkdirSync(target, { recursive: true });
  if (storage.kind === "folder") return;
  if (storage.kind === "disk") return mountDisk(join(root.folder, "disk"), target, storage.sizeMb);
  checkSize(storage.sizeMb);
  return mount({ type: "tmpfs", source: "tmpfs", target, options: [`size=${storage.sizeMb}m`, "mode=700", "nodev"] });
}

function createFolders(root: OverlayRoot): void {
  const work = workOf(root);
  // A work folder of an earlier mount is refused with `volatile`.
  rmSync(work, { recursive: true, force: true });
  for (const path of [work, upper(root), emptyOf(root)]) {
    // Only if it is new: the sandbox may have changed the permissions of its root. `chmod`, because the umask restricts `mkdir`.
    if (mkdirSync(path, { recursive: true }) !== undefined) chmodSync(path, 0o755);
  }
}

function mappedMount(root: OverlayRoot, store: LayerStore, content: RootContent): MappedMount {
  const { hostId, size } = root.mapped ?? MACHINE_USERS;
  const lower = root.layers.length === 0 ? [emptyOf(root)] : lowerOf(root, store);
  return { ...overlayOf(root), lower, changes: changes(root), users: { hostId, size }, ...content };
}

function overlayOf(root: OverlayRoot): Pick<MappedMount, "target" | "options" | "setsUserIds"> {
  return { target: rootPath(root), options: OVERLAY_OPTIONS, setsUserIds: root.setsUserIds ?? false };
}

async function mountOverlay(root: OverlayRoot, store: LayerStore): Promise<void> {
  if (root.mapped != null) throw new PlatformError("internal", `the root ${rootPath(root)} has users of its own, and no content`);
  // The highest layer comes first. An overlay needs at least one.
  const lower = root.layers.length === 0 ? [emptyOf(root)] : highestFirst(root.layers).map((id) => store.filesOf(id));
  await mount({
    type: "overlay",
    source: "overlay",
    target: rootPath(root),
    cwd: store.folder,
    options: [`lowerdir=${lower.join(":")}`, `upperdir=${upper(root)}`, `workdir=${workOf(root)}`, ...OVERLAY_OPTIONS, "nodev", "nosuid"],
  });
}

function changes({ folder }: OverlayRoot): string {
  return join(folder, "changes");
}

function workOf(root: OverlayRoot): string {
  return join(changes(root), "work");
}

/** The layer of a root without any. */
function emptyOf({ folder }: OverlayRoot): string {
  return join(folder, "empty");
}

/** The folder that becomes that of the changes when the root is exchanged. */
function nextChanges({ folder }: OverlayRoot): string {
  return join(folder, "next");
}

/** The folders of the layers, the highest first. */
function lowerOf({ layers }: OverlayRoot, store: LayerStore): string[] {
  return highestFirst(layers).map((id) => resolve(store.folder, store.filesOf(id)));
}

/**
 * Each layer once: an image with two layers of the same files has one twice, and the kernel refuses that. A layer hides all files that it has
 * further down, so those can be left out.
 */
function highestFirst(layers: readonly LayerId[]): LayerId[] {
  return [...new Set(layers.toReversed())];
}

/** The folder with the changes. */
export function upper(root: OverlayRoot): string {
  return join(changes(root), "upper");
}
