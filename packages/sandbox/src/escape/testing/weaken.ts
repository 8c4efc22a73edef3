import type { OciConfig } from "../../oci/config.ts";

/** What scripts find in their environment: things of the machine that no sandbox may reach. */
export interface Targets {
  /** A file, and a word that is only in it. */
  readonly FILE: string;
  readonly WORD: string;
  /** A process that has the word as a variable. */
  readonly VICTIM: string;
  /** A TCP port on the machine's loopback interface, a unix socket with a path, and one without. */
  readonly PORT: string;
  readonly SOCKET: string;
  readonly ABSTRACT: string;
}

/** A configuration that lacks a wall. The types of the real one do not allow that. */
export type WeakConfig = Omit<OciConfig, "process" | "linux"> & {
  readonly process: Omit<OciConfig["process"], "capabilities"> & {
    readonly capabilities: Readonly<Record<string, readonly string[]>>;
  };
  readonly linux: Omit<OciConfig["linux"], "resources"> & { readonly resources: object };
};

export type Weaken = (config: WeakConfig, targets: Targets) => WeakConfig;

/** Removes several walls. */
export function weaken(...all: readonly Weaken[]): Weaken {
  return (config, targets) => all.reduce((weaker, one) => one(weaker, targets), config);
}

const CAPABILITIES = [
  ...["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_ADMIN", "NET_RAW", "PERFMON", "BPF"],
  ...["SETGID", "SETUID", "SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "SYS_TIME"],
].map((name) => `CAP_${name}`);

export const allCapabilities: Weaken = ({ process, ...config }) => ({
  ...config,
  process: { ...process, capabilities: { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES } },
});

export const allDevices: Weaken = ({ linux, ...config }) => ({
  ...config,
  linux: { ...linux, resources: { devices: [{ allow: true, access: "rwm" }] } },
});
