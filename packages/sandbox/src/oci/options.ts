import type { Resources } from "@aenv/contract";
import type { ReachedLimit, RefusedConnection, SandboxRuntime } from "../engine/engine.ts";
import type { LayerStore } from "../images/layers.ts";
import type { NetworksOptions } from "../network/networks.ts";
import { type CapabilityLimit, DEFAULT_CAPABILITY_LIMIT } from "../spec/capabilities.ts";
import type { RootFiles } from "./container.ts";
import type { ImagesOptions } from "./images.ts";

export interface OciEngineOptions {
  /** Everything is kept in its subfolder `oci`, except the key of inits. */
  readonly home: string;
  /** Runtime of sandboxes whose specification names none. */
  readonly runtime?: SandboxRuntime;
  /** The files of sandboxes without an image. */
  readonly base: (layers: LayerStore) => Promise<RootFiles>;
  /** The program for sandboxes with runc. The default is crun if it works here, else runc. */
  readonly runcPath?: string;
  /** The program `runsc`, if it is not in a standard place. */
  readonly runscPath?: string;
  /**
   * `own`, the default: users of sandboxes with runc are not users of the machine, where its kernel and its file systems can translate the
   * owners of files. `machine`: they are the same, and root of a sandbox is root behind all other walls.
   */
  readonly users?: "own" | "machine";
  /** What sandboxes may ask for; `mapped` by default. Root of a runsc sandbox is root of gVisor's kernel only. */
  readonly capabilityLimit?: CapabilityLimit;
  /** Credentials and exceptions for registries. */
  readonly images?: Pick<ImagesOptions, "authFile" | "imageRegistries" | "insecureRegistries" | "lookup" | "unpackLimits" | "variables">;
  /** The images and their unpacked layers; several homes can share them. */
  readonly storeFolder?: string;
  /** Containers of each image in use that wait for a program. */
  readonly poolSize?: number;
  /** Containers of all images that wait; those of the images that were used last. */
  readonly poolTotal?: number;
  /** Whether the machine has memory for containers that wait. The default is true. */
  readonly hasMemory?: () => boolean;
  /** Network namespaces that wait for a container. */
  readonly networkPoolSize?: number;
  /** Addresses of the sandboxes, such as `172.30.0.0/16`. The default is a free network in 10.64.0.0/10. */
  readonly subnet?: string;
  /** The IPv4 addresses of a name that a sandbox looks up; the default asks the name servers of this machine. */
  readonly resolve?: NetworksOptions["resolve"];
  /** Called for outgoing connections that were refused: each destination of a sandbox once a minute, and few of one sandbox. */
  readonly onRefused?: (refused: RefusedConnection) => void;
  /** Called for limits that a sandbox reached while it went on: each once in ten minutes. */
  readonly onLimit?: (reached: ReachedLimit) => void;
  /** Receives what the operator should know. */
  readonly log?: (line: string) => void;
  /** Unused layers of images are removed after this time. */
  readonly keepImagesMs?: number;
  /** Space for all snapshots of this home together. */
  readonly snapshotSpaceMb?: number;
  /** Size at which the older half of a sandbox's log is dropped. */
  readonly logBytes?: number;
  /** Limits of sandboxes whose specification has none. */
  readonly defaults?: Resources;
}

/** The options with their defaults. */
export type OciSettings = OciEngineOptions &
  Required<
    Omit<
      OciEngineOptions,
      "home" | "base" | "storeFolder" | "runcPath" | "runscPath" | "subnet" | "resolve" | "defaults" | "onRefused" | "onLimit" | "log"
    >
  >;

export const DEFAULTS = {
  runtime: "runc",
  users: "own",
  capabilityLimit: DEFAULT_CAPABILITY_LIMIT,
  poolSize: 0,
  poolTotal: 48,
  hasMemory: () => true,
  networkPoolSize: 2,
  keepImagesMs: 7 * 24 * 60 * 60_000,
  snapshotSpaceMb: 20_480,
  logBytes: 4 * 1024 * 1024,
  images: {},
} as const;
