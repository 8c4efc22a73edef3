package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestMountsDirectlyBelowTheRootAreFound(t *testing.T) {
	found, err := parseMounts(`70 60 0:50 / / rw - overlay overlay rw
71 70 0:51 / /proc rw - proc proc rw
72 71 0:51 /sys /proc/sys ro - proc proc rw
73 70 0:52 / /dev rw - tmpfs tmpfs rw
74 70 8:1 /init /.aenv/init ro - ext4 /dev/vda rw
`)
	expected := sandboxMounts{root: "70", below: []string{"/proc", "/dev", "/.aenv/init"}}
	if err != nil || !reflect.DeepEqual(found, expected) {
		t.Fatalf("found %v, %v", found, err)
	}
}

func TestAMountWhosePathIsEscapedIsRefused(t *testing.T) {
	_, err := parseMounts("70 60 0:50 / / rw - overlay overlay rw\n71 70 0:51 / /a\\040b rw - tmpfs tmpfs rw\n")
	if !errors.Is(err, errUnsupported) {
		t.Fatalf("%v", err)
	}
}

func TestMountPointsThatARootLacksAreCreatedAndNoLinkLeadsOutOfIt(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	file, err := os.Create(filepath.Join(outside, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	directory, err := os.Open(outside)
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, mounted := range map[string]*os.File{"proc": directory, ".aenv/init": file} {
		point, err := mountPoint(root, name, int(mounted.Fd()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		point.Close()
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.IsDir() != (mounted == directory) {
			t.Fatalf("%s: %v %v", name, info, err)
		}
	}
	for name, mounted := range map[string]*os.File{"link": directory, "link/dev": directory, "link/init": file} {
		if point, err := mountPoint(root, name, int(mounted.Fd())); err == nil {
			t.Fatalf("%s: opened %s", name, point.Name())
		}
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
		t.Fatalf("outside of the root: %v %v", names, err)
	}
}
