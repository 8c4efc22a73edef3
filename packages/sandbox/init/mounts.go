package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// Mounts that are nowhere yet, by their descriptors. Package syscall has none of these calls.

const (
	// The numbers are the same on every architecture.
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysFsopen       = 430
	sysFsconfig     = 431
	sysFsmount      = 432
	sysMountSetattr = 442

	atWorkingDirectory = ^uintptr(99) // AT_FDCWD
	atEmptyPath        = 0x1000
	openTreeClone      = 0x1
	moveFromEmptyPath  = 0x4
	moveToEmptyPath    = 0x40
	fsopenCloexec      = 0x1
	fsmountCloexec     = 0x1
	fsconfigFlag       = 0
	fsconfigString     = 1
	fsconfigCreate     = 6
	attrReadOnly       = 0x1
	attrNoSuid         = 0x2
	attrNoDev          = 0x4
	attrNoExec         = 0x8
	attrIdmap          = 0x100000
)

// translated returns a copy of a mount whose owners are those of the sandbox; without users, they are those of the machine.
func translated(path string, users *os.File, attributes uint64) (int, error) {
	mounted, _, errno := syscall.Syscall(sysOpenTree, atWorkingDirectory, uintptr(unsafe.Pointer(cText(path))), openTreeClone|syscall.O_CLOEXEC)
	if errno != 0 {
		return -1, fmt.Errorf("open_tree %s: %w", path, errno)
	}
	if users == nil {
		return int(mounted), nil
	}
	if errno := setMount(mounted, mountAttributes{set: attrIdmap | attributes, users: uint64(users.Fd())}); errno != 0 {
		syscall.Close(int(mounted))
		return -1, fmt.Errorf("%w: mount_setattr %s: %v", errUnsupported, path, errno)
	}
	return int(mounted), nil
}

// setAttributes adds attributes to a mount.
func setAttributes(mounted int, attributes uint64) error {
	if errno := setMount(uintptr(mounted), mountAttributes{set: attributes}); errno != 0 {
		return fmt.Errorf("mount_setattr: %w", errno)
	}
	return nil
}

type mountAttributes struct{ set, clear, propagation, users uint64 }

func setMount(mounted uintptr, wanted mountAttributes) syscall.Errno {
	_, _, errno := syscall.Syscall6(
		sysMountSetattr, mounted, uintptr(unsafe.Pointer(cText(""))), atEmptyPath, uintptr(unsafe.Pointer(&wanted)), unsafe.Sizeof(wanted), 0)
	return errno
}

// newMount returns a new file system that is mounted nowhere yet.
func newMount(kind string, options [][2]string, attributes uint64) (int, error) {
	config, _, errno := syscall.Syscall(sysFsopen, uintptr(unsafe.Pointer(cText(kind))), fsopenCloexec, 0)
	if errno != 0 {
		return -1, fmt.Errorf("fsopen %s: %w", kind, errno)
	}
	defer syscall.Close(int(config))
	for _, option := range options {
		if errno := configure(config, option[0], option[1]); errno != 0 {
			return -1, fmt.Errorf("the option %s=%s of %s: %w", option[0], option[1], kind, errno)
		}
	}
	if _, _, errno := syscall.Syscall6(sysFsconfig, config, fsconfigCreate, 0, 0, 0, 0); errno != 0 {
		return -1, fmt.Errorf("a file system %s cannot be created: %w", kind, errno)
	}
	mounted, _, errno := syscall.Syscall(sysFsmount, config, fsmountCloexec, uintptr(attributes))
	if errno != 0 {
		return -1, fmt.Errorf("fsmount %s: %w", kind, errno)
	}
	return int(mounted), nil
}

// configure sets an option with a value, or one without.
func configure(config uintptr, name, value string) (errno syscall.Errno) {
	if value == "" {
		_, _, errno = syscall.Syscall6(sysFsconfig, config, fsconfigFlag, uintptr(unsafe.Pointer(cText(name))), 0, 0, 0)
	} else {
		_, _, errno = syscall.Syscall6(
			sysFsconfig, config, fsconfigString, uintptr(unsafe.Pointer(cText(name))), uintptr(unsafe.Pointer(cText(value))), 0, 0)
	}
	return errno
}

// attach mounts at a path below a folder, or at the folder or file itself if the path is empty, and closes the
// descriptor, also if it fails.
func attach(mounted int, folder uintptr, path string) error {
	defer syscall.Close(mounted)
	return moveMount(mounted, folder, path)
}

func moveMount(mounted int, folder uintptr, path string) error {
	flags := uintptr(moveFromEmptyPath)
	if path == "" {
		flags |= moveToEmptyPath
	}
	_, _, errno := syscall.Syscall6(
		sysMoveMount, uintptr(mounted), uintptr(unsafe.Pointer(cText(""))), folder, uintptr(unsafe.Pointer(cText(path))), flags, 0)
	if errno != 0 {
		return fmt.Errorf("mounting at %q failed: %w", path, errno)
	}
	return nil
}

func cText(value string) *byte {
	bytes, _ := syscall.BytePtrFromString(value)
	return bytes
}
