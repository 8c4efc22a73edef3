package main

import (
	"os"
	"path/filepath"
	"testing"
)

func openRoot(t *testing.T) (*os.Root, string) {
	folder := t.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, folder
}

func TestAFileOfTheServerReplacesThatOfTheImageAlsoIfThatIsALinkOutOfTheRoot(t *testing.T) {
	root, folder := openRoot(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("of the machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "etc/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "etc/file"), []byte("of the image"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etc/link", "etc/file", "new/folder/file"} {
		if err := writeBelow(root, name, "given"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		written, err := os.ReadFile(filepath.Join(folder, name))
		info, _ := os.Lstat(filepath.Join(folder, name))
		if string(written) != "given" || err != nil || info.Mode() != 0o644 {
			t.Fatalf("%s: %q %v %v", name, written, err, info.Mode())
		}
	}
	if kept, _ := os.ReadFile(outside); string(kept) != "of the machine" {
		t.Fatalf("the file outside of the root is %q", kept)
	}
}

func TestAFolderThatIsALinkOutOfTheRootIsRefused(t *testing.T) {
	root, folder := openRoot(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(folder, "etc")); err != nil {
		t.Fatal(err)
	}
	if err := writeBelow(root, "etc/hosts", "given"); err == nil {
		t.Fatal("it was written")
	}
	if files, _ := os.ReadDir(outside); len(files) != 0 {
		t.Fatalf("%v is outside of the root", files)
	}
}

func TestTheTemporaryFolderIsNotEmptyAndKeepsItsMode(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o700} {
		root, folder := openRoot(t)
		path := filepath.Join(folder, "tmp")
		expected := os.ModeDir | os.ModeSticky | 0o777
		if mode != 0 {
			expected = os.ModeDir | mode
			if err := os.Mkdir(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		// A second time nothing changes.
		for range 2 {
			if err := keepTemporary(root); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(path)
		if files, _ := os.ReadDir(path); err != nil || info.Mode() != expected || len(files) != 1 {
			t.Fatalf("%v %v %v", info.Mode(), files, err)
		}
	}
}

func TestATemporaryFolderThatIsALinkIsLeftAlone(t *testing.T) {
	root, folder := openRoot(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(folder, "tmp")); err != nil {
		t.Fatal(err)
	}
	if err := keepTemporary(root); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(outside); len(files) != 0 {
		t.Fatalf("%v is outside of the root", files)
	}
}
