import type { SandboxRuntime } from "../../engine/engine.ts";
import type { LaunchOptions } from "../../init/connection.ts";
import type { Hierarchy } from "../cgroups/hierarchy.ts";

/** How the programs differ: in the options before the subcommand, and in how they are started. */
export interface Dialect {
  readonly name: SandboxRuntime;
  options(options: DialectOptions): string[];
  /** The file in the folder of a sandbox to which it writes the compiled filter of system calls. */
  readonly filterFile?: string;
  /** With control groups of version 1, it moves processes several times while it runs. */
  readonly movesOften?: boolean;
  /** What the launcher does for it. */
  readonly launching?: (hierarchy: Hierarchy) => LaunchOptions;
}

export interface DialectOptions {
  readonly root: string;
  readonly errorsPath: string;
  readonly diskMb?: number;
  /** Set-user-id programs change the user. gVisor's kernel needs an option for that, which old releases do not have. */
  readonly setsUserIds?: boolean;
  readonly sharedFolder?: string | undefined;
}

export const runc: Dialect = {
  name: "runc",
  options: ({ root, errorsPath }) => ["--root", root, "--log", errorsPath, "--log-format", "json"],
};

/** Where machines have a tree of version 2 beside those of version 1. */
const UNIFIED = "/sys/fs/cgroup/unified";

/** A program in C with the command line of runc, which starts sandboxes with less than half of its CPU time. */
export const crun: Dialect = {
  ...runc,
  filterFile: "seccomp.bpf",
  // It refuses to start if that tree has controllers of its own. So it gets an empty folder there, in a mount namespace that ends with it.
  launching: (hierarchy) => ({
    ownMounts: true,
    ...(hierarchy.version === 1 && hierarchy.mounts.includes(UNIFIED) && { hidden: UNIFIED }),
  }),
};

/** gVisor's kernel uses the descriptors 253 to 255. The next lower one may be open: room for it is room for all four. */
const DESCRIPTORS = 253;

/** They must be the same in all calls for a sandbox, and for those that are restored from it. */
export const runsc: Dialect = {
  name: "runsc",
  movesOften: true,
  launching: () => ({ descriptors: DESCRIPTORS }),
  options: ({ root, errorsPath, diskMb, setsUserIds = false, sharedFolder }) => [
    `--root=${root}`,
    `--log=${errorsPath}`,
    "--log-format=json",
    // Needs no virtualization. The presence of /dev/kvm does not prove that the other platform works.
    "--platform=systrap",
    "--network=sandbox",
    // Changes of the root are in a file in that root which the sandbox does not see, so a checkpoint holds files and memory of one moment.
    `--overlay2=root:self${diskMb === undefined ? "" : `,size=${diskMb}m`}`,
    ...(setsUserIds ? ["--allow-suid"] : []),
    // The empty network namespace of the processes that serve files. A new one for each takes a tenth of a start.
    sharedFolder === undefined ? "--gofer-network-namespace=new" : `--shared-root=${sharedFolder}`,
    // It would only print advice.
    "--host-settings=ignore",
  ],
};
