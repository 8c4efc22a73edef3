package main

import (
	"fmt"
	"syscall"
	"unsafe"
)

// System calls and constants that package syscall lacks.

const (
	prSetChildSubreaper = 36
	sysCloseRange       = 436 // on every architecture
	closeRangeCloexec   = 4
	pAll                = 0
	wNoWait             = 0x01000000
	ioctlAddEntropy     = 0x40085203 // RNDADDENTROPY
	ioctlReseed         = 0x5207     // RNDRESEEDCRNG
)

// adoptOrphans makes this process the parent of orphans also where it is not process 1, as in tests.
func adoptOrphans() error {
	if syscall.Getpid() == 1 {
		return nil // it is their parent already
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("cannot adopt orphans: prctl(PR_SET_CHILD_SUBREAPER): %w", errno)
	}
	return nil
}

// hideInheritedFiles keeps files that the container runtime left open from the sandbox's programs.
func hideInheritedFiles() {
	if _, _, errno := syscall.RawSyscall(sysCloseRange, 3, ^uintptr(0)>>32, closeRangeCloexec); errno == 0 {
		return
	}
	for fd := 3; fd < 1024; fd++ { // an older kernel
		syscall.CloseOnExec(fd)
	}
}

// waitid looks for children without waiting for and without reaping them: ECHILD means that there are none.
func waitid(info *[128]byte) error {
	_, _, errno := syscall.Syscall6(
		syscall.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(info)), syscall.WEXITED|syscall.WNOHANG|wNoWait, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func ioctl(fd, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

var signalNames = map[string]syscall.Signal{
	"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGTRAP": 5, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8, "SIGKILL": 9,
	"SIGUSR1": 10, "SIGSEGV": 11, "SIGUSR2": 12, "SIGPIPE": 13, "SIGALRM": 14, "SIGTERM": 15, "SIGSTKFLT": 16, "SIGCHLD": 17,
	"SIGCONT": 18, "SIGSTOP": 19, "SIGTSTP": 20, "SIGTTIN": 21, "SIGTTOU": 22, "SIGURG": 23, "SIGXCPU": 24, "SIGXFSZ": 25,
	"SIGVTALRM": 26, "SIGPROF": 27, "SIGWINCH": 28, "SIGIO": 29, "SIGPWR": 30, "SIGSYS": 31,
}

func signalName(signal syscall.Signal) string {
	for name, number := range signalNames {
		if number == signal {
			return name
		}
	}
	return fmt.Sprintf("SIG%d", int(signal))
}

func parseSignal(name string) (syscall.Signal, error) {
	if signal, known := signalNames[name]; known {
		return signal, nil
	}
	return 0, failed("invalid_request", "%q is not a signal; use a name such as SIGTERM", name)
}
