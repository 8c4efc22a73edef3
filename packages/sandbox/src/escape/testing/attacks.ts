import { allCapabilities, allDevices, type Weaken, weaken } from "./weaken.ts";

export interface Attack {
  /** Completes "a sandbox cannot ...". */
  readonly name: string;
  /** Prints `escaped` if it succeeds. */
  readonly script: string;
  /** Removes the walls that stop it: in such a sandbox it succeeds. */
  readonly without: Weaken;
  /** A call that gVisor's kernel may answer by itself, because it does not reach the machine. */
  readonly ownKernelMay?: boolean;
  /** With the capabilities of Docker it succeeds: always, or where users of the sandbox are those of the machine. */
  readonly capableMay?: "always" | "machine users";
}

const isX64 = process.arch === "x64";

/** A system call with invalid or harmless arguments. Any other failure than a refusal shows that a program may use it. */
function call(name: keyof typeof NUMBERS, args: string): string {
  const number = NUMBERS[name][isX64 ? 0 : 1];
  return `perl -e 'my $handle = pack("LLa8", 8, 1, ""); my $r = syscall(${number}, ${args}); print "escaped\\n" if $r >= 0 || !grep { $! == $_ } (1, 3, 13, 38, 95)'`;
}

/** Numbers of system calls on x64 and on arm64. */
const NUMBERS = {
  bpf: [321, 280],
  keyctl: [250, 219],
  open_by_handle_at: [304, 265],
  perf_event_open: [298, 241],
  ptrace: [101, 117],
  reboot: [169, 142],
  settimeofday: [164, 170],
  setns: [308, 268],
  syslog: [103, 116],
} as const;

/** Connects to a packed address. */
function connect(family: number, address: string): string {
  return `perl -e 'socket(S, ${family}, 1, 0) && connect(S, ${address}) && print "escaped\\n"'`;
}

const anyCall = weaken(allCapabilities, ({ linux: { seccomp: _, ...linux }, ...config }) => ({ ...config, linux }));
const noFilter: Weaken = ({ linux: { seccomp: _, ...linux }, ...config }) => ({ ...config, linux });
const sharedProcesses = weaken(allCapabilities, without("pid"));
const sharedNetwork = without("network");

/** A namespace is the machine's. */
function without(type: string): Weaken {
  return ({ linux, ...config }) => ({
    ...config,
    linux: { ...linux, namespaces: linux.namespaces.filter((namespace) => namespace.type !== type) },
  });
}

/** The folder of the file and the socket is mounted. */
const sharedFolder: Weaken = (config, { FILE }) => {
  const folder = FILE.slice(0, FILE.lastIndexOf("/"));
  return { ...config, mounts: [...config.mounts, { destination: folder, type: "bind", source: folder, options: ["rbind", "rw"] }] };
};

const writableMounts: Weaken = (config) => ({
  ...config,
  mounts: config.mounts.map((mount) => ({ ...mount, options: mount.options.filter((option) => option !== "ro") })),
});

const noHiddenPaths: Weaken = ({ linux, ...config }) => ({ ...config, linux: { ...linux, maskedPaths: [], readonlyPaths: [] } });

export const attacks: readonly Attack[] = [
  { name: "read a file of the machine by its path", script: 'grep -qs "$WORD" "$FILE" && echo escaped', without: sharedFolder },
  {
    name: "read a file of the machine through links",
    script: 'ln -s "$FILE" /tmp/link; ln -s ../../../../../.. /tmp/up; grep -qs "$WORD" /tmp/link "/tmp/up$FILE" && echo escaped',
    without: sharedFolder,
  },
  {
    name: "read a file of the machine through the roots of processes in /proc",
    script: 'for p in /proc/[0-9]*; do grep -qs "$WORD" "$p/root$FILE" "$p/cwd/../../../../..$FILE" && echo escaped && break; done',
    without: sharedProcesses,
  },
  {
    name: "read the variables of processes of the machine",
    script: 'for p in /proc/[0-9]*; do grep -qs "VICTIM_WORD=$WORD" "$p/environ" && echo escaped && break; done',
    without: sharedProcesses,
  },
  {
    name: "open a file of the machine by its number",
    script: call("open_by_handle_at", "-100, $handle, 0"),
    without: anyCall,
  },
  { name: "mount a file system", script: "mount -t tmpfs none /tmp && echo escaped", without: anyCall },
  {
    name: "make a read-only mount writable",
    script: "mount -o remount,bind,rw /.aenv/init && echo escaped",
    without: anyCall,
  },
  {
    name: "open a device of the machine by a node that it creates",
    script: "mknod /tmp/kmsg c 1 11 && dd if=/tmp/kmsg of=/dev/null bs=8192 count=1 && echo escaped",
    without: weaken(anyCall, allDevices),
  },
  { name: "change settings of the kernel", script: "(: >> /proc/sys/kernel/core_pattern) && echo escaped", without: noHiddenPaths },
  {
    name: "read what /proc tells about the machine",
    script: "grep -qs . /proc/interrupts /proc/keys && echo escaped",
    without: noHiddenPaths,
  },
  { name: "read the log of the kernel", script: call("syslog", "9, 0, 0"), without: anyCall },
  {
    name: "raise its own limits",
    script: "for f in /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max; do [ -e $f ] && (echo 9999 > $f) && echo escaped; done",
    without: writableMounts,
  },
  { name: "change the init, which other sandboxes run too", script: "chmod 777 /.aenv/init && echo escaped", without: writableMounts },
  { name: "signal a process of the machine", script: 'kill -9 "$VICTIM" && echo escaped', without: sharedProcesses },
  { name: "trace a process of the machine", script: call("ptrace", "0x4206, 0 + $ENV{VICTIM}, 0, 0"), without: sharedProcesses },
  {
    name: "enter other namespaces",
    script: call("setns", 'do { open(N, "<", "/proc/1/ns/net"); fileno(N) }, 0x40000000'),
    without: anyCall,
    ownKernelMay: true,
  },
  { name: "create a user namespace", script: "unshare -U echo escaped", without: noFilter, ownKernelMay: true },
  {
    name: "become root by a set-user-id program",
    script:
      'cp /usr/bin/perl /tmp/p; chmod 4755 /tmp/p; perl -e \'$( = $) = 1000; $< = $> = 1000; exec "/tmp/p", "-e", "print qq(escaped\\n) if \\$> == 0"\'',
    without: ({ process, ...config }) => ({ ...config, process: { ...process, noNewPrivileges: false } }),
    capableMay: "always",
  },
  // Without a time, the call only checks the permission: no test may change the clock of the machine.
  { name: "set the clock", script: call("settimeofday", "0, 0"), without: anyCall },
  // With a wrong first argument, which is checked after the permission.
  { name: "restart the machine", script: call("reboot", "0, 0, 0, 0"), without: anyCall },
  { name: "load a program into the kernel", script: call("bpf", "0, 0, 0"), without: anyCall, ownKernelMay: true },
  { name: "read keys of the kernel", script: call("keyctl", "0, -3, 0"), without: noFilter, ownKernelMay: true },
  { name: "watch events of the processor", script: call("perf_event_open", "0, 0, -1, -1, 0"), without: anyCall, ownKernelMay: true },
  {
    name: "open a raw socket",
    script: `perl -e 'socket(S, 2, 3, 1) && print "escaped\\n"'`,
    without: allCapabilities,
    capableMay: "machine users",
  },
  { name: "open a packet socket", script: `perl -e 'socket(S, 17, 3, 768) && print "escaped\\n"'`, without: anyCall },
  {
    name: "connect to a port of the machine",
    script: connect(2, 'pack("S n C4 x8", 2, $ENV{PORT}, 127, 0, 0, 1)'),
    without: sharedNetwork,
  },
  { name: "connect to a unix socket of the machine", script: connect(1, 'pack("S a*", 1, $ENV{SOCKET})'), without: sharedFolder },
  {
    name: "connect to an abstract unix socket of the machine",
    script: connect(1, 'pack("S a*", 1, "\\0$ENV{ABSTRACT}")'),
    without: sharedNetwork,
  },
];
