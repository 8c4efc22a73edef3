// gvisor-sentry-prewarmer runs ahead of gVisor's kernel: `gvisor-sentry-prewarmer PROGRAM ARGV0 [ARG...]`. It does as a small program with one
// thread what takes the kernel much longer. The kernel does all of it itself if this program did not.
package main

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const detach = 2 // MNT_DETACH

var proc = [...]byte{'/', 'p', 'r', 'o', 'c', 0}

func main() {
	runtime.LockOSThread()
	if len(os.Args) < 3 {
		os.Exit(2)
	}
	program, args, env := os.Args[1], os.Args[2:], os.Environ()
	if setsItselfUpAsRoot(args) {
		if fd, ok := startUmounter(); ok {
			env = append(env, "AENV_UMOUNTER_FD="+strconv.Itoa(fd))
		}
	}
	err := syscall.Exec(program, args, env)
	os.Stderr.WriteString("gvisor-sentry-prewarmer: " + program + ": " + err.Error() + "\n")
	os.Exit(1)
}

// setsItselfUpAsRoot is false for those that change their user first, and start themselves again.
func setsItselfUpAsRoot(args []string) bool {
	changesUser := slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--sync-userns-fd") })
	return syscall.Geteuid() == 0 && slices.Contains(args, "--apply-caps=true") && slices.Contains(args, "--setup-root") && !changesUser
}

// startUmounter leaves a process behind that unmounts /proc when a byte is written to the descriptor, and ends when it is closed.
func startUmounter() (writeEnd int, ok bool) {
	var pipe [2]int
	if syscall.Pipe2(pipe[:], 0) != nil {
		return 0, false
	}
	all := ^uint64(0)
	var before uint64
	// No signal handler of this program may run in the child.
	const setMask = 2
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	pid, _, err := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && err == 0 {
		awaitAndUnmount(uintptr(pipe[0]))
	}
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&before)), 0, 8, 0, 0)
	syscall.Close(pipe[0])
	if err != 0 {
		syscall.Close(pipe[1])
		return 0, false
	}
	return pipe[1], true
}

// awaitAndUnmount runs in a process in which nothing else of the Go runtime runs: it allocates nothing and calls nothing but the system.
//
//go:nosplit
func awaitAndUnmount(fd uintptr) {
	const closeRange = 436
	// Nobody else notices then that a descriptor was closed.
	syscall.RawSyscall(syscall.SYS_DUP3, fd, 0, 0)
	syscall.RawSyscall(closeRange, 1, ^uintptr(0)>>32, 0)
	var read [1]byte
	n, _, _ := syscall.RawSyscall(syscall.SYS_READ, 0, uintptr(unsafe.Pointer(&read)), 1)
	if n == 1 {
		_, _, err := syscall.RawSyscall(syscall.SYS_UMOUNT2, uintptr(unsafe.Pointer(&proc)), detach, 0)
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(err), 0, 0)
	}
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
}
