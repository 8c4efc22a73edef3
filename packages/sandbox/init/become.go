package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A fourth use of this program, on the machine: it becomes the runtime that starts a sandbox.

// becomeCrun becomes a program for which a folder is empty, if one is given. Nobody else sees that, because the mounts are in a namespace that
// ends with the program.
func becomeCrun(hidden string, argv []string) error {
	program, err := programOf(argv)
	if err != nil {
		return err
	}
	// The program goes on with the mount namespace of this thread.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	if hidden != "" {
		if err := syscall.Mount("none", hidden, "tmpfs", 0, "size=64k"); err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", hidden, err)
		}
	}
	// crun starts itself again from a read-only mount, unless it is on one: that takes a tenth of the start of a sandbox.
	if err := bindReadOnly(program); err != nil {
		return fmt.Errorf("%s cannot be made read-only: %w", program, err)
	}
	return fmt.Errorf("%s cannot be started: %w", program, syscall.Exec(program, argv, os.Environ()))
}

// becomeRunsc becomes a program whose children can have this many descriptors at once. gVisor's kernel uses high numbers. When a process with
// several threads uses such a number for the first time, Linux lets it wait until all processors have noticed that, for 10 to 25 milliseconds.
// Children of a process with a high number in use have room for it from the beginning.
func becomeRunsc(descriptors int, argv []string) error {
	program, err := programOf(argv)
	if err != nil {
		return err
	}
	// The program goes on with the descriptors of this thread, which it shares with no other: so nothing waits here.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_FILES); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := syscall.Dup3(null, descriptors-1, 0); err != nil {
		return fmt.Errorf("the descriptor %d cannot be opened: %w", descriptors-1, err)
	}
	return fmt.Errorf("%s cannot be started: %w", program, syscall.Exec(program, argv, os.Environ()))
}

func programOf(argv []string) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("a program is missing behind --")
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return "", fmt.Errorf("%s cannot be started: %w", argv[0], err)
	}
	return program, nil
}

func bindReadOnly(path string) error {
	if err := syscall.Mount(path, path, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}
