import type { SandboxRuntime } from "../../engine.ts";

/** How the command lines of the two runtimes differ: in the options before the subcommand. */
export interface Dialect {
  readonly name: SandboxRuntime;
  options(options: { readonly root: string; readonly errorsPath: string; readonly diskMb?: number }): string[];
}

export const runc: Dialect = {
  name: "runc",
  options: ({ root, errorsPath }) => ["--root", root, "--log", errorsPath, "--log-format", "json"],
};

/** They must be the same in all calls for a sandbox, and for those that are restored from it. */
export const runsc: Dialect = {
  name: "runsc",
  options: ({ root, errorsPath, diskMb }) => [
    `--root=${root}`,
    `--log=${errorsPath}`,
    "--log-format=json",
    // Needs no virtualization. The presence of /dev/kvm does not prove that the other platform works.
    "--platform=systrap",
    "--network=sandbox",
    // Changes of the root are in a file in that root which the sandbox does not see, so a checkpoint holds files and memory of one moment.
    `--overlay2=root:self${diskMb === undefined ? "" : `,size=${diskMb}m`}`,
    // The default leaves a mount behind.
    "--gofer-network-namespace=new",
  ],
};
