import { createHash, randomBytes } from "node:crypto";
import type { CapabilitySet, Limit, Resources } from "@aenv/contract";
import type { SandboxAddress, SandboxRuntime } from "../engine/engine.ts";
import { isRunning, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import type { LayerId } from "../images/layers.ts";
import type { ImageConfig } from "../images/layout.ts";
import type { InitConnection } from "../init/connection.ts";
import type { SandboxNetwork } from "../network/held-network.ts";
import type { KnownLimits } from "../spec/limits.ts";
import type { SandboxMount } from "../spec/mounts.ts";
import type { ControlGroup } from "./cgroups/group.ts";
import type { UserMapping } from "./overlay/mapped.ts";
import type { UpperStorage } from "./overlay/root.ts";

/** The files of a sandbox, and what they say about their program. */
export interface RootFiles {
  /** Layers from the lowest to the highest. */
  readonly layers: readonly LayerId[];
  /** Null if they are not an image. */
  readonly config: ImageConfig | null;
  /** Folders of this machine that programs may read. */
  readonly mounts?: readonly SandboxMount[];
}

export interface ContainerSpec {
  readonly runtime: SandboxRuntime;
  readonly files: RootFiles;
  readonly resources: Resources;
  readonly capabilities?: CapabilitySet | undefined;
  /** In addition to those of the files. */
  readonly mounts?: readonly SandboxMount[];
  /** The init that runs in a checkpoint; absent: the current one. */
  readonly initPath?: string | undefined;
  /** The folder of the checkpoint that it continues. */
  readonly checkpoint?: string;
}

/** Limits that a container has from its start on. A sandbox that takes it sets the others. */
const FIXED = ["diskMb", "shmMb"] as const satisfies readonly Limit[];

/** The same in records; those of earlier versions lack some. */
export type FixedLimits = Pick<KnownLimits, (typeof FIXED)[number]>;

export function fixedLimits(of: FixedLimits): Resources {
  return Object.fromEntries(FIXED.flatMap((limit) => (of[limit] == null ? [] : [[limit, of[limit]]])));
}

/** The limits of a sandbox that takes a container which has some already. */
export function limitsWithin(resources: Resources, of: FixedLimits): Resources {
  const own = Object.entries(resources).filter(([limit]) => !FIXED.some((fixed) => fixed === limit));
  return { ...Object.fromEntries(own), ...fixedLimits(of) };
}

/** The limits as in a record, in which null is no limit. */
export function storedLimits(of: FixedLimits): FixedLimits {
  return Object.fromEntries(FIXED.map((limit) => [limit, of[limit] ?? null]));
}

/** What is needed to find and remove all resources of a container. */
export interface ContainerRecord extends FixedLimits {
  readonly format: 1;
  readonly id: string;
  /** The process that created it: one that no sandbox uses is removed once that process has ended. */
  readonly maker: ProcessIdentity;
  readonly runtime: SandboxRuntime;
  readonly groupPath: string;
  readonly files: RootFiles;
  readonly storage: UpperStorage;
  /** Its users are not those of the machine. Missing in records of earlier versions. */
  readonly users?: UserMapping | null;
  /** What its root may do. Missing in records of earlier versions: `minimal`. */
  readonly capabilities?: CapabilitySet;
  readonly initPath: string;
  /** The name of its network; null until it has one. */
  readonly network: string | null;
  /** Process 1, as this machine sees it; null until it runs. */
  readonly process: ProcessIdentity | null;
  /** Its root is being exchanged. If that was interrupted, it is not known which folder has its changes. */
  readonly isRestacking?: boolean;
  /** The process that serves the files of a runsc sandbox. Missing in records of earlier versions. */
  readonly fileServer?: ProcessIdentity | null;
}

/** A running container: the init is process 1 and is connected. */
export interface Container {
  readonly record: ContainerRecord & { readonly process: ProcessIdentity };
  readonly network: SandboxNetwork;
  readonly init: InitConnection;
  readonly group: ControlGroup;
}

/** A container in which nothing runs yet: it waits for a checkpoint. */
export type PreparedContainer = Pick<Container, "record" | "network" | "group">;

/** No program is expected to listen here. */
export const INIT_PORT = 1;

/** Whether the process that serves its files has ended. Its kernel goes on, but no program can start. */
export function hasLostFiles(processes: ProcessTable, { fileServer }: Pick<ContainerRecord, "fileServer">): boolean {
  return fileServer != null && !isRunning(processes, fileServer);
}

/** Where roots with their own users are mounted: in a folder that every user can enter. */
export function mappedFolder(homeKey: string): string {
  return `/run/aenv-${homeKey}`;
}

/** Marks the control groups and the ids of containers of one home. */
export function homeKey(folder: string): string {
  return createHash("sha256").update(folder).digest("hex").slice(0, 6);
}

/** All of one length: runsc finds containers by the beginning of their ids. */
export const ID_LENGTH = 16;

export function newContainerId(homeKey: string): string {
  return `${homeKey}${randomBytes(5).toString("hex")}`;
}

export function groupPathOf(homeKey: string, id: string): string {
  return `/aenv-${homeKey}/${id}`;
}

export function initAddress({ address }: SandboxNetwork): SandboxAddress {
  return { kind: "tcp", host: address, port: INIT_PORT };
}
