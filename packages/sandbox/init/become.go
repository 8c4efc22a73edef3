package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A fourth use of this program, on the machine: it becomes another program, for which a folder is empty, if one is given. Nobody else sees
// that, because the mounts are in a namespace that ends with the program.

func becomeMain(hidden string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("--hide needs a program behind --")
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("%s cannot be started: %w", argv[0], err)
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

func bindReadOnly(path string) error {
	if err := syscall.Mount(path, path, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}
