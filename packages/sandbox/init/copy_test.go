package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheProgramCopiesItselfAsAnExecutable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "init")
	for range 2 { // also over an earlier copy
		if err := copySelf(path); err != nil {
			t.Fatal(err)
		}
	}
	own, _ := os.ReadFile("/proc/self/exe")
	copied, _ := os.ReadFile(path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o755 || !bytes.Equal(own, copied) {
		t.Fatalf("%v %v, %d of %d bytes", info, err, len(copied), len(own))
	}
	if err := copySelf(filepath.Join(t.TempDir(), "none", "init")); err == nil {
		t.Fatal("a folder that does not exist is no error")
	}
}
