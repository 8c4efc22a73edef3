import { chmodSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CommandDefaults, SandboxRuntime } from "../engine/engine.ts";
import type { ProcessIdentity } from "../host/process-table.ts";
import { socketFor } from "../host/socket-path.ts";

/** The content of a sandbox's `record.json`. */
export interface DockerRecord {
  readonly format: 1;
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The folder of its sockets: its own or, if paths in it are too long for sockets, one elsewhere. */
  readonly sockets: string;
  readonly memoryMb: number | null;
  /** Most processes and threads. Absent in records of older versions. */
  readonly processes?: number;
  readonly runtime: SandboxRuntime;
  /** `open`: it is in the network of containers whose packets are not filtered. */
  readonly egress: "none" | "open";
  /** Its packets are filtered: it has connections only through a network of its own. */
  readonly isFiltered?: boolean;
  /** The name of its own network, whose record has its policy. It keeps it until it ends. */
  readonly network?: string;
  /** The ids of its private networks. */
  readonly networks?: readonly string[];
  /** The ids of its volumes. */
  readonly volumes?: readonly string[];
  /** The port on which the program listens in the sandbox; null if it does not listen. */
  readonly port: number | null;
  /** Whether the program takes only connections that begin with the caller's key. */
  readonly checksCallers?: boolean;
  /** Empty while it starts. The variables are those of the image, not of the instance, which may hold secrets. */
  readonly commandDefaults: CommandDefaults;
  /** The server process that created it. While that process runs, no other one touches an unfinished sandbox. */
  readonly maker: ProcessIdentity;
  /** Whether it has answered and `create` has returned it. */
  readonly isReady: boolean;
}

/** As long as the longest name of a socket below: `run/init`, and the program's socket while it is replaced. */
const LONGEST_SOCKET = "s.123456";

/** The folder for the sockets of a sandbox. */
export function socketsFor(folder: string): string {
  return dirname(socketFor(folder, tmpdir(), LONGEST_SOCKET));
}

export function createSocketFolders(record: DockerRecord): void {
  mkdirSync(record.sockets, { recursive: true, mode: 0o700 });
  mkdirSync(runFolder(record));
  // Root of the container may be another user here.
  chmodSync(runFolder(record), 0o777);
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
