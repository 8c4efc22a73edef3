import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import { mountByLauncher } from "../../host/launcher.ts";
import { isInitError } from "../../init/error.ts";

/** Root of the sandbox is this user of the machine, and so on. */
export interface UserMapping {
  readonly hostId: number;
  readonly size: number;
}

/** A folder of the machine in a sandbox. */
export interface Bind {
  readonly source: string;
  readonly target: string;
  readonly isReadOnly: boolean;
}

/** A small file of a sandbox, with its text. */
export interface RootFile {
  readonly path: string;
  readonly text: string;
}

export interface MappedMount {
  /** Absolute paths, the highest layer first. */
  readonly lower: readonly string[];
  readonly changes: string;
  readonly options: readonly string[];
  readonly target: string;
  /** A size of 0: they are those of the machine. */
  readonly users: UserMapping;
  readonly network?: string | null;
  readonly binds?: readonly Bind[];
  readonly files?: readonly RootFile[];
  readonly keepsTemporary?: boolean;
  /** Set-user-id programs change the user. */
  readonly setsUserIds?: boolean;
}

const TIMEOUT_MS = 30_000;

/** Ids from here are used by no user and no other tool of a machine; they are never stored on its disk. */
const FIRST_ID = 0x7000_0000;
const LAST_ID = 0xfffe_0000;
export const MAPPED_USERS = 65_536;

/** A range of users for a sandbox. Two sandboxes have the same one seldom, and are separated by all other walls then. */
export function newUserMapping(random: () => number = Math.random): UserMapping {
  const ranges = Math.floor((LAST_ID - FIRST_ID) / MAPPED_USERS);
  return { hostId: FIRST_ID + Math.floor(random() * ranges) * MAPPED_USERS, size: MAPPED_USERS };
}

/** Mounts an overlay whose files keep their owners on disk, and have those of the sandbox in it. Throws `sandbox.unsupported` if that is not possible. */
export function mountMapped(mount: MappedMount): Promise<void> {
  return call("mount_root", mount);
}

/** The process through which a sandbox gets another root. */
export interface RootUser {
  /** The init, which is the only process of its sandbox, or the process that will serve the files of a runsc sandbox that was not started yet. */
  readonly pid: number;
  readonly isFileServer: boolean;
}

/**
 * Exchanges the root of a sandbox for such an overlay. It is frozen, or has nothing to do. Throws `sandbox.unsupported` if the process has opened
 * files of its root; then, and after other failures that are not `sandbox.lost`, the sandbox has its former root.
 */
export function restackMapped(mount: MappedMount, { pid, isFileServer }: RootUser): Promise<void> {
  return call("restack_root", mount, { pid, is_file_server: isFileServer });
}

/** Why owners cannot be translated for files in these folders; null if they can. Mounts nothing. */
export async function findMapProblem(folder: string, layers: string): Promise<string | null> {
  const changes = join(folder, "probe");
  const target = join(changes, "root");
  for (const name of ["upper", "work", "root"]) await mkdir(join(changes, name), { recursive: true });
  const mount = {
    lower: [layers],
    changes,
    options: [],
    target,
    users: newUserMapping(),
  };
  return call("mount_root", mount, { probe: true }).then(
    () => null,
    (error: unknown) => {
      if (isPlatformError(error)) return error.message;
      throw error;
    },
  );
}

/** What the launcher is asked for. */
export function requestOf({
  users,
  binds = [],
  network,
  keepsTemporary,
  setsUserIds,
  ...mount
}: MappedMount): Readonly<Record<string, unknown>> {
  return {
    ...mount,
    keeps_temporary: keepsTemporary,
    set_user_id: setsUserIds,
    host_id: users.hostId,
    size: users.size,
    network: network ?? "",
    binds: binds.map(({ source, target, isReadOnly }) => ({ source, target, read_only: isReadOnly })),
  };
}

async function call(
  request: "mount_root" | "restack_root",
  mount: MappedMount,
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  try {
    await mountByLauncher(request, { ...requestOf(mount), ...more }, AbortSignal.timeout(TIMEOUT_MS));
  } catch (error) {
    throw new PlatformError(codeOf(error), `${mount.target} could not be mounted: ${messageOf(error)}`);
  }
}

/** `unsupported`: by the kernel or a file system, or because the sandbox uses files of its root. `halfway`: it can still reach its former root. */
function codeOf(error: unknown): "sandbox.unsupported" | "sandbox.lost" | "sandbox.start_failed" {
  if (isInitError(error, "unsupported")) return "sandbox.unsupported";
  return isInitError(error, "halfway") ? "sandbox.lost" : "sandbox.start_failed";
}
