import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { isPlatformError, PlatformError } from "@aenv/contract";
import { SYSTEM_PATH } from "../launcher.ts";

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

export interface MappedMount {
  /** The program that mounts: the init's. */
  readonly tool: string;
  /** Absolute paths, the highest layer first. */
  readonly lower: readonly string[];
  readonly changes: string;
  readonly options: readonly string[];
  readonly target: string;
  readonly users: UserMapping;
  readonly network: string | null;
  readonly binds: readonly Bind[];
}

const TIMEOUT_MS = 30_000;
/** The tool's exit code for a kernel or a file system that cannot translate owners. */
const UNSUPPORTED = 3;

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
export async function mountMapped(mount: MappedMount): Promise<void> {
  await mkdir(mount.target, { recursive: true, mode: 0o711 });
  await call(mount, false);
}

/** Whether owners can be translated for files in these folders. Mounts nothing. */
export async function canMapUsers(tool: string, folder: string, layers: string): Promise<boolean> {
  const changes = join(folder, "probe");
  const target = join(changes, "root");
  for (const name of ["upper", "work", "root"]) await mkdir(join(changes, name), { recursive: true });
  const mount = {
    tool,
    lower: [layers],
    changes,
    options: [],
    target,
    users: newUserMapping(),
    network: null,
    binds: [],
  };
  return call(mount, true).then(
    () => true,
    (error: unknown) => {
      if (isPlatformError(error)) return false;
      throw error;
    },
  );
}

async function call({ tool, users, binds, network, ...mount }: MappedMount, isProbe: boolean): Promise<void> {
  const request = {
    ...mount,
    host_id: users.hostId,
    size: users.size,
    network: network ?? "",
    binds: binds.map(({ source, target, isReadOnly }) => ({ source, target, read_only: isReadOnly })),
    probe: isProbe,
  };
  await new Promise<void>((resolve, reject) => {
    execFile(
      tool,
      ["--mount-root", JSON.stringify(request)],
      { cwd: "/", env: { PATH: SYSTEM_PATH }, timeout: TIMEOUT_MS },
      (cause, _, stderr) => {
        if (cause === null) return resolve();
        const code = cause.code === UNSUPPORTED ? "sandbox.unsupported" : "sandbox.start_failed";
        reject(new PlatformError(code, `${mount.target} could not be mounted: ${stderr.trim() || cause.message}`, { cause }));
      },
    );
  });
}
