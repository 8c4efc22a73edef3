package main

import (
	"fmt"
	"io"
	"os"
)

// copySelf writes this program to a file that every user can execute. It needs no other program, so any image with the init can do it.
func copySelf(path string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	part := path + ".part"
	to, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if closing := to.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(part, 0o755) // the umask does not count
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return fmt.Errorf("cannot copy this program to %s: %w", path, err)
	}
	return nil
}
