import { randomBytes } from "node:crypto";
import { chmodSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { CommandDefaults } from "../engine.ts";
import type { ProcessIdentity } from "../process/process-table.ts";
import { isSandboxId, removeFolder, socketFor } from "../process/sandbox-folder.ts";

/** The content of a sandbox's `record.json`. */
export interface DockerRecord {
  readonly format: 1;
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The folder of its sockets: its own or, if paths in it are too long for sockets, one elsewhere. */
  readonly sockets: string;
  readonly memoryMb: number | null;
  /** The port on which the program listens in the sandbox; null if it does not listen. */
  readonly port: number | null;
  /** Empty while it starts. The variables are those of the image, not of the instance, which may hold secrets. */
  readonly commandDefaults: CommandDefaults;
  /** The server process that created it. While that process runs, no other one touches an unfinished sandbox. */
  readonly maker: ProcessIdentity;
  /** Whether it has answered and `create` has returned it. */
  readonly isReady: boolean;
}

const RECORD = "record.json";
/** As long as the longest name of a socket below: `run/init`, and the program's socket while it is replaced. */
const LONGEST_SOCKET = "s.123456";

/** The folder of one sandbox. It exists before the container and is removed after it, so the next engine finds every container. */
export class DockerFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Fails if a sandbox with this id exists. */
  create(record: Omit<DockerRecord, "format" | "sockets">): DockerRecord {
    const sockets = dirname(socketFor(this.path, tmpdir(), LONGEST_SOCKET));
    const whole: DockerRecord = { format: 1, ...record, sockets };
    const part = join(dirname(this.path), `.part-${randomBytes(9).toString("hex")}`);
    mkdirSync(part, { mode: 0o700 });
    writeFileSync(join(part, RECORD), JSON.stringify(whole), { mode: 0o600 });
    try {
      renameSync(part, this.path);
    } catch (cause) {
      rmSync(part, { recursive: true, force: true });
      if (!["ENOTEMPTY", "EEXIST"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
      throw new PlatformError("sandbox.exists", `a sandbox '${record.id}' exists already; destroy it first, or choose another id`, {
        cause,
      });
    }
    if (sockets !== this.path) mkdirSync(sockets, { mode: 0o700 });
    mkdirSync(runFolder(whole));
    // Root of the container may be another user here.
    chmodSync(runFolder(whole), 0o777);
    return whole;
  }

  write(record: DockerRecord): void {
    const part = join(this.path, `${RECORD}.part`);
    writeFileSync(part, JSON.stringify(record), { mode: 0o600 });
    renameSync(part, join(this.path, RECORD));
  }

  /** Null if it is missing, damaged or of another format. */
  read(): DockerRecord | null {
    try {
      const record = JSON.parse(readFileSync(join(this.path, RECORD), "utf8"));
      return record?.format === 1 ? record : null;
    } catch {
      return null;
    }
  }

  async remove(record: DockerRecord | null): Promise<void> {
    if (record !== null && record.sockets !== this.path) await removeFolder(record.sockets);
    await removeFolder(this.path);
  }
}

/** Mounted into the container until the init listens. */
export function runFolder({ sockets }: DockerRecord): string {
  return join(sockets, "run");
}

/** Where this machine connects to the init. */
export function initSocket({ sockets }: DockerRecord): string {
  return join(sockets, "i");
}

/** Where this machine connects to the program. */
export function programSocket({ sockets }: DockerRecord): string {
  return join(sockets, "s");
}

export function sandboxIdsIn(folder: string): string[] {
  return readdirSync(folder).filter(isSandboxId);
}

/** The name of this home in labels: random, because several machines and homes can use one daemon. */
export function openHomeId(folder: string): string {
  const file = join(folder, "home-id");
  const part = `${file}.${randomBytes(6).toString("hex")}`;
  writeFileSync(part, randomBytes(6).toString("hex"));
  try {
    // Of two servers that start at the same time, both use the id that was first.
    linkSync(part, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(part, { force: true });
  }
  return readFileSync(file, "utf8");
}
