import type { Architecture } from "../engine/architecture.ts";

/** The seccomp part of an OCI `config.json`. */
export interface SeccompProfile {
  readonly defaultAction: "SCMP_ACT_ERRNO";
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly SeccompRule[];
}

export interface SeccompRule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  readonly args?: readonly { readonly index: number; readonly value: number; readonly valueTwo?: number; readonly op: string }[];
}

const EPERM = 1;
const ENOSYS = 38;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const NEW_NAMESPACE = 0x7e02_0000;

/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Others, such as AF_VSOCK and AF_ALG, are parts of the kernel that programs rarely need. */
const SOCKET_FAMILIES = [1, 2, 10, 16];

/** Linux, Linux with addresses that are not random, which debuggers set, and the request of the current value. */
const PERSONALITIES = [0x0, 0x40000, 0xffff_ffff];

/**
 * Calls that need privileges or belong to parts of the kernel with many known holes. They fail with EPERM, so that a program reports
 * a missing permission. A call in no list fails with ENOSYS, so that libraries fall back to an older call: `clone3` is such a call,
 * because its flags are in memory, where a filter cannot read them.
 */
export const REFUSED = words(`
  acct add_key adjtimex bpf clock_adjtime clock_settime create_module delete_module fanotify_init finit_module fsconfig fsmount fsopen
  fspick init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie
  mbind migrate_pages mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open
  pivot_root quotactl quotactl_fd reboot request_key set_mempolicy set_mempolicy_home_node setdomainname sethostname setns settimeofday
  swapoff swapon syslog umount umount2 unshare uselib userfaultfd vhangup
`);

/** Calls that every program may use with any argument. */
export const ALLOWED = words(`
  accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown chroot clock_getres clock_gettime
  clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old
  epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
  fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr
  fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list
  get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid
  getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr
  inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioctl
  ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen
  listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir
  mkdirat mknod mknodat mlock mlock2 mlockall mmap modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend
  mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause
  pidfd_getfd pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64
  process_madvise process_mrelease process_vm_readv process_vm_writev pselect6 ptrace pwrite64 pwritev pwritev2 read readahead readlink
  readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir
  rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
  sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
  sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile
  sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority
  setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd
  signalfd4 socketpair splice stat statfs statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create
  timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask
  uname unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write writev
`);

/**
 * Only calls of the machine's own architecture: 32-bit x86 creates sockets with `socketcall`, whose arguments a filter cannot read.
 */
export function seccompProfile(architecture: Architecture): SeccompProfile {
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: ENOSYS,
    architectures: [architecture === "x64" ? "SCMP_ARCH_X86_64" : "SCMP_ARCH_AARCH64"],
    syscalls: [
      { names: ALLOWED, action: "SCMP_ACT_ALLOW" },
      { names: REFUSED, action: "SCMP_ACT_ERRNO", errnoRet: EPERM },
      {
        names: ["clone"],
        action: "SCMP_ACT_ALLOW",
        args: [{ index: 0, value: NEW_NAMESPACE, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
      },
      ...SOCKET_FAMILIES.map((family) => allowFirst("socket", family)),
      ...PERSONALITIES.map((personality) => allowFirst("personality", personality)),
    ],
  };
}

/** Allows a call if its first argument has this value. Rules of the same call are alternatives. */
function allowFirst(name: string, value: number): SeccompRule {
  return { names: [name], action: "SCMP_ACT_ALLOW", args: [{ index: 0, value, op: "SCMP_CMP_EQ" }] };
}

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}
