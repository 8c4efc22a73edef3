package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A fourth use of this program, on the machine: it becomes another program, which finds an empty folder at a path. Nobody else sees it, because
// the mount is in a namespace that ends with the program.

func hideMain(path string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("--hide needs a program behind --")
	}
	// The program goes on with the mount namespace of this thread.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	if err := syscall.Mount("none", path, "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf("%s cannot be hidden: %w", path, err)
	}
	program, err := exec.LookPath(argv[0])
	if err == nil {
		err = syscall.Exec(program, argv, os.Environ())
	}
	return fmt.Errorf("%s cannot be started: %w", argv[0], err)
}
