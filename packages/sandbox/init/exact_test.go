package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The access control list `user::rwx,user:1:rw-,group::r-x,mask::rwx,other::---`.
const testAcl = "\x02\x00\x00\x00" +
	"\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x06\x00\x01\x00\x00\x00" + "\x04\x00\x05\x00\xff\xff\xff\xff" +
	"\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"

// exactTree is all that is compared of the files in a folder.
func exactTree(t *testing.T, folder string) map[string]string {
	found := map[string]string{}
	firstNames := map[uint64]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		info, _ := entry.Info()
		shown := describeExactly(wholeTree{}, path, path, info)
		stat := info.Sys().(*syscall.Stat_t)
		if _, is := firstNames[stat.Ino]; !is {
			firstNames[stat.Ino] = path[len(folder):]
		}
		content := []byte{}
		if shown.Type == "file" && info.Size() < 1<<20 {
			content, _ = os.ReadFile(path)
		}
		size := info.Size()
		if info.IsDir() {
			size = 0
		}
		found[path[len(folder):]] = fmt.Sprint(shown.Type, size, info.Mode(), stat.Uid, stat.Gid, stat.Mtim, shown.Attributes, shown.Target,
			firstNames[stat.Ino], content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// exported returns the entries of what `export` sends, and their contents, with names in the folder.
func exported(t *testing.T, folder string, paths []string) (headers []*tar.Header, contents [][]byte) {
	c := connectTest(t)
	id := c.open("export", any_{})
	c.send(frame{kindData, id, []byte(strings.Join(paths, "\x00") + "\x00")})
	c.send(frame{kindEnd, id, nil})
	r := c.finish(id)
	if r.Error != nil {
		t.Fatal(r.Error)
	}
	for from := tar.NewReader(bytes.NewReader(r.data)); ; {
		header, err := from.Next()
		if err == io.EOF {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		header.Name, _ = filepath.Rel(folder, "/"+header.Name)
		content, _ := io.ReadAll(from)
		headers, contents = append(headers, header), append(contents, content)
	}
}

func restoreTest(t *testing.T, into string, headers []*tar.Header, contents [][]byte) error {
	var archive bytes.Buffer
	to := tar.NewWriter(&archive)
	for i, header := range headers {
		if err := to.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		to.Write(contents[i])
	}
	to.Close()
	root, err := openFolder(into)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return root.restore(&archive)
}

func must(t *testing.T, failures ...error) {
	t.Helper()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}

func TestAnExactCopyHasAllThatAFileSystemKeeps(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root sets owners")
	}
	from, to := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(from, name) }
	must(t, os.MkdirAll(at("shared/deep"), 0o755), os.Chown(at("shared"), 3, 4), os.Chmod(at("shared"), 0o770|fs.ModeSetgid))
	must(t, syscall.Setxattr(at("shared"), "system.posix_acl_default", []byte(testAcl), 0))
	writeTest(t, at("shared/inherits"), "x")
	writeTest(t, at("plain"), "text")
	must(t, os.Chmod(at("plain"), 0o755|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	must(t, syscall.Setxattr(at("plain"), "user.a=b%", []byte{0, 255, 10}, 0), syscall.Setxattr(at("plain"), "user.empty", nil, 0))
	must(t, syscall.Setxattr(at("plain"), "user.overlay.opaque", []byte("y"), 0))
	writeTest(t, at("listed"), "x")
	must(t, syscall.Setxattr(at("listed"), "system.posix_acl_access", []byte(testAcl), 0))
	must(t, os.Symlink("/nowhere", at("link")), os.Lchown(at("link"), 5, 6), syscall.Mkfifo(at("pipe"), 0o622))
	must(t, os.Chtimes(at("plain"), time.Unix(-5, 7), time.Unix(1e9, 123456789)))
	must(t, os.Chtimes(at("shared/deep"), time.Unix(1, 0), time.Unix(2, 3)))
	sparse, err := os.Create(at("sparse"))
	must(t, err, sparse.Truncate(1<<42))
	_, err = sparse.WriteAt([]byte("middle"), 1<<41)
	must(t, err, sparse.Close())
	// What is there has an access control list that the copies must not get.
	must(t, syscall.Setxattr(to, "system.posix_acl_default", []byte(testAcl), 0))
	must(t, os.Mkdir(filepath.Join(to, "plain"), 0o700), os.Mkdir(filepath.Join(to, "gone"), 0o700))
	writeTest(t, filepath.Join(to, "gone/inner"), "x")

	var paths []string
	for _, name := range []string{"shared", "shared/deep", "shared/inherits", "plain", "listed", "link", "pipe", "missing", "sparse"} {
		paths = append(paths, at(name))
	}
	headers, contents := exported(t, from, paths)
	for i, header := range headers {
		if header.Name == "sparse" && len(contents[i]) > 1<<20 {
			t.Fatalf("the holes were sent: %d bytes", len(contents[i]))
		}
	}
	gone := &tar.Header{Name: "gone", Typeflag: tar.TypeChar}
	same := &tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "plain"}
	must(t, os.Link(at("plain"), at("hard")))
	must(t, restoreTest(t, to, append([]*tar.Header{gone}, append(headers, same)...), append(append([][]byte{nil}, contents...), nil)))
	if is, was := exactTree(t, to), exactTree(t, from); !reflect.DeepEqual(is, was) {
		for path := range was {
			if is[path] != was[path] {
				t.Errorf("%s: %s, and not %s", path, is[path], was[path])
			}
		}
		t.Fatalf("%d and %d files", len(is), len(was))
	}
	var stat syscall.Stat_t
	must(t, syscall.Stat(filepath.Join(to, "sparse"), &stat))
	if stat.Blocks*512 > 1<<20 {
		t.Fatalf("the sparse file uses %d blocks", stat.Blocks)
	}
	if left, err := syscall.Getxattr(filepath.Join(to, "plain"), "user.overlay.opaque", nil); err != syscall.ENODATA {
		t.Fatalf("an attribute of overlayfs was copied: %d, %v", left, err)
	}
}

func TestAListThatNeedsMoreRoomThanItSaysIsRead(t *testing.T) {
	text, err := growing(func(to []byte) (int, error) {
		switch {
		case len(to) == 0:
			return 3, nil
		case len(to) < 100:
			return -1, syscall.ERANGE
		}
		return copy(to, "abc"), nil
	})
	if text != "abc" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	if _, err := growing(func(to []byte) (int, error) {
		if len(to) == 0 {
			return 1, nil
		}
		return -1, syscall.ERANGE
	}); err != syscall.ERANGE {
		t.Fatal(err)
	}
}

func TestHolesAreFoundWhereAFileSystemDoesNotKnowThem(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must(t, err, file.Truncate(1_000_000))
	for _, at := range []int64{65_536, 131_072, 999_999} {
		_, err := file.WriteAt([]byte("x"), at)
		must(t, err)
	}
	if parts := partsByContent(file, 1_000_000); !reflect.DeepEqual(parts, []filePart{{65_536, 131_072}, {983_040, 16_960}}) {
		t.Fatalf("%v", parts)
	}
	file.Close()
}

func TestNamesOfAttributesAndPartsOfFilesAreChecked(t *testing.T) {
	part := func(at, size byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, at, 0, 0, 0, 0, 0, 0, 0, size} }
	for name, entry := range map[string]struct {
		header  tar.Header
		content []byte
	}{
		"an attribute of overlayfs":    {tar.Header{PAXRecords: map[string]string{"SCHILY.xattr.trusted.overlay.opaque": "y"}}, nil},
		"an attribute of its users":    {tar.Header{PAXRecords: map[string]string{"SCHILY.xattr.user.overlay.opaque": "y"}}, nil},
		"an attribute of the kernel":   {tar.Header{PAXRecords: map[string]string{"SCHILY.xattr.security.selinux": "y"}}, nil},
		"a part after the end":         {tar.Header{PAXRecords: map[string]string{"AENV.size": "4"}}, append(part(3, 2), 1, 1)},
		"a part that is cut off":       {tar.Header{PAXRecords: map[string]string{"AENV.size": "4"}}, append(part(0, 4), 1)},
		"a part of a negative size":    {tar.Header{PAXRecords: map[string]string{"AENV.size": "-4"}}, part(0, 1)},
		"a size that is not a number":  {tar.Header{PAXRecords: map[string]string{"AENV.size": "x"}}, nil},
		"a device":                     {tar.Header{Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, nil},
		"an entry above":               {tar.Header{Name: "../x"}, nil},
		"a hard link out of the root":  {tar.Header{Typeflag: tar.TypeLink, Linkname: "../kept"}, nil},
		"an entry below a link":        {tar.Header{Name: "out/x"}, nil},
		"the removal of what is above": {tar.Header{Name: "out/kept", Typeflag: tar.TypeChar}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			into, outside := t.TempDir(), t.TempDir()
			writeTest(t, filepath.Join(outside, "kept"), "x")
			must(t, os.Symlink(outside, filepath.Join(into, "out")))
			entry.header.Size, entry.header.Uid, entry.header.Gid = int64(len(entry.content)), os.Getuid(), os.Getgid()
			if entry.header.Name == "" {
				entry.header.Name = "file"
			}
			if err := restoreTest(t, into, []*tar.Header{&entry.header}, [][]byte{entry.content}); err == nil {
				t.Fatal("it was accepted")
			}
			if found, _ := os.ReadDir(outside); len(found) != 1 {
				t.Fatalf("%v", found)
			}
		})
	}
}
