package main

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// System calls for names in an open folder. Package syscall lacks most of them.

const (
	oPath       = 0x200000 // O_PATH, on every architecture
	atNoFollow  = 0x100    // AT_SYMLINK_NOFOLLOW
	atRemoveDir = 0x200    // AT_REMOVEDIR
)

func openAt(folder int, name string, flags int, mode os.FileMode) (*os.File, error) {
	for {
		fd, err := syscall.Openat(folder, name, flags|syscall.O_CLOEXEC, uint32(mode.Perm()))
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if err != syscall.EINTR {
			return nil, err
		}
	}
}

func readLinkAt(folder int, name string) (string, error) {
	for size := 256; ; size *= 2 {
		target := make([]byte, size)
		n, err := callAt(syscall.SYS_READLINKAT, folder, name, uintptr(unsafe.Pointer(&target[0])), uintptr(size))
		if err != nil {
			return "", err
		}
		if int(n) < size {
			return string(target[:n]), nil
		}
	}
}

// removeAt removes a file, a link or an empty folder.
func removeAt(folder int, name string) error {
	_, err := callAt(syscall.SYS_UNLINKAT, folder, name, 0, 0)
	if err == nil {
		return nil
	}
	_, asFolder := callAt(syscall.SYS_UNLINKAT, folder, name, atRemoveDir, 0)
	if errors.Is(asFolder, syscall.ENOTDIR) {
		return err
	}
	return asFolder
}

func symlinkAt(target string, folder int, name string) error {
	_, _, errno := syscall.Syscall(
		syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(cText(target))), uintptr(folder), uintptr(unsafe.Pointer(cText(name))))
	return orNil(errno)
}

func linkAt(fromFolder int, from string, toFolder int, to string) error {
	_, err := callAt(syscall.SYS_LINKAT, fromFolder, from, uintptr(toFolder), uintptr(unsafe.Pointer(cText(to))))
	return err
}

// touchAt sets the times of a file, or of a link itself.
func touchAt(folder int, name string, accessed, modified time.Time) error {
	times := [2]syscall.Timespec{timespecOf(accessed), timespecOf(modified)}
	_, err := callAt(syscall.SYS_UTIMENSAT, folder, name, uintptr(unsafe.Pointer(&times)), atNoFollow)
	return err
}

// timespecOf also takes times that are too early or too late for a number of nanoseconds.
func timespecOf(at time.Time) syscall.Timespec {
	return syscall.Timespec{Sec: at.Unix(), Nsec: int64(at.Nanosecond())}
}

func callAt(number uintptr, folder int, name string, third, fourth uintptr) (uintptr, error) {
	result, _, errno := syscall.Syscall6(number, uintptr(folder), uintptr(unsafe.Pointer(cText(name))), third, fourth, 0, 0)
	return result, orNil(errno)
}

func orNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
