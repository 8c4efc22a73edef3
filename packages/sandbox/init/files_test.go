package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAFileIsReplacedAtOnceAndKeepsItsMode(t *testing.T) {
	c, folder := connectTest(t), t.TempDir()
	path := filepath.Join(folder, "a/b.txt")
	wantCode(t, c.upload("write", any_{"path": path}, []byte("x")), "not_found")
	if r := c.upload("write", any_{"path": path, "mkdirs": true, "mode": 0o640}, []byte("one")); r.Error != nil {
		t.Fatal(r.Error)
	}
	c.upload("write", any_{"path": path}, []byte("two"))
	c.upload("write", any_{"path": path, "append": true}, []byte(" three"))
	if r := c.run("read", any_{"path": path}); string(r.data) != "two three" || r.Result["mode"] != float64(0o640) {
		t.Fatalf("%+v", r)
	}
	if r := c.run("read", any_{"path": path, "offset": 4, "length": 2}); string(r.data) != "th" {
		t.Fatalf("%q", r.data)
	}
	// A write that the client gives up leaves nothing behind.
	id := c.open("write", any_{"path": path})
	c.send(frame{kindData, id, []byte("half")})
	c.send(frame{kindReset, id, []byte("{}")})
	c.until(id, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Fatalf("%v", entries)
	}
}

func TestAWriteToALinkReplacesTheFileAndNotTheLink(t *testing.T) {
	c, folder := connectTest(t), t.TempDir()
	os.MkdirAll(filepath.Join(folder, "deep/er"), 0o755)
	writeTest(t, filepath.Join(folder, "deep/file"), "old")
	os.Symlink("deep/er", filepath.Join(folder, "short"))
	os.Symlink("short/../file", filepath.Join(folder, "link"))
	for _, where := range []any_{{"path": filepath.Join(folder, "link")}, {"path": "link", "root": folder}} {
		if r := c.upload("write", where, []byte("new")); r.Error != nil {
			t.Fatal(r.Error)
		}
		text, _ := os.ReadFile(filepath.Join(folder, "deep/file"))
		if target, err := os.Readlink(filepath.Join(folder, "link")); err != nil || target != "short/../file" || string(text) != "new" {
			t.Fatalf("%q %q %v", text, target, err)
		}
		writeTest(t, filepath.Join(folder, "deep/file"), "old")
	}
}

func TestNoPathOrLinkLeadsOutOfTheRoot(t *testing.T) {
	c, outside := connectTest(t), t.TempDir()
	root := t.TempDir()
	writeTest(t, filepath.Join(outside, "secret"), "s")
	os.Symlink(outside, filepath.Join(root, "out"))
	os.Symlink("/proc/self/root", filepath.Join(root, "magic"))
	os.Symlink("../"+filepath.Base(outside), filepath.Join(root, "up"))
	for _, folder := range []string{"out", "up", "magic" + outside, "../" + filepath.Base(outside)} {
		path := folder + "/secret"
		wantCode(t, c.run("read", any_{"root": root, "path": path}), "outside_root")
		wantCode(t, c.call("stat", any_{"root": root, "path": path}), "outside_root")
		wantCode(t, c.upload("write", any_{"root": root, "path": path}, []byte("x")), "outside_root")
		wantCode(t, c.upload("write", any_{"root": root, "path": path, "append": true}, []byte("x")), "outside_root")
		wantCode(t, c.call("remove", any_{"root": root, "path": path}), "outside_root")
		wantCode(t, c.call("rename", any_{"root": root, "path": path, "to": "here"}), "outside_root")
		wantCode(t, c.call("mkdir", any_{"root": root, "path": folder + "/new"}), "outside_root")
		wantCode(t, c.run("list", any_{"root": root, "path": folder}), "outside_root")
		wantCode(t, c.run("pack", any_{"root": root, "path": folder}), "outside_root")
		wantCode(t, c.run("watch", any_{"root": root, "path": folder}), "outside_root")
		wantCode(t, c.upload("unpack", any_{"root": root, "path": folder}, archiveOf()), "outside_root")
	}
	if r := c.run("list", any_{"root": root, "path": "/", "recursive": true}); bytes.Contains(r.data, []byte("secret")) {
		t.Fatalf("%s", r.data)
	}
	if r := c.run("pack", any_{"root": root, "path": "/"}); bytes.Contains(r.data, []byte("secret")) {
		t.Fatal("the archive contains a file from outside")
	}
	c.call("remove", any_{"root": root, "path": "out", "recursive": true})
	if text, _ := os.ReadFile(filepath.Join(outside, "secret")); string(text) != "s" {
		t.Fatalf("%q", text)
	}
}

func TestAnArchiveWritesOnlyIntoItsFolder(t *testing.T) {
	c, outside := connectTest(t), t.TempDir()
	for name, entries := range map[string][]tar.Header{
		"an entry above":         {{Name: "../x", Size: 1}},
		"an absolute entry":      {{Name: outside + "/x", Size: 1}},
		"an absolute link":       {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "l/x", Size: 1}},
		"a link above":           {{Name: "d/l", Typeflag: tar.TypeSymlink, Linkname: "../../x"}},
		"an absolute hard link":  {{Name: "l", Typeflag: tar.TypeLink, Linkname: outside + "/kept"}},
		"a hard link from above": {{Name: "l", Typeflag: tar.TypeLink, Linkname: "../" + filepath.Base(outside) + "/kept"}},
		"a device":               {{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"a pipe":                 {{Name: "p", Typeflag: tar.TypeFifo}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if r := c.upload("unpack", any_{"path": folder}, archiveOf(entries...)); r.Error == nil {
				t.Fatalf("%+v", r)
			}
		})
	}
	folder := t.TempDir()
	os.Symlink(outside, filepath.Join(folder, "planted"))
	for _, name := range []string{"planted/x", "planted/deep/x"} {
		wantCode(t, c.upload("unpack", any_{"path": folder}, archiveOf(tar.Header{Name: name, Size: 1})), "outside_root")
	}
	wantCode(t, c.upload("unpack", any_{"path": folder}, []byte(strings.Repeat("no archive", 100))), "invalid_archive")
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Fatalf("%v", entries)
	}
}

func TestAnArchiveIsUnpackedThroughALinkThatStaysInItsFolder(t *testing.T) {
	c, folder := connectTest(t), t.TempDir()
	os.MkdirAll(filepath.Join(folder, "real/deep"), 0o755)
	os.Symlink("real/deep/..", filepath.Join(folder, "link"))
	writeTest(t, filepath.Join(folder, "real/file"), "old")
	entries := []tar.Header{
		{Name: "link/file", Size: 3},
		{Name: "link/new/", Typeflag: tar.TypeDir},
		{Name: "link/hard", Typeflag: tar.TypeLink, Linkname: "real/file"},
		{Name: "link/soft", Typeflag: tar.TypeSymlink, Linkname: "file"},
	}
	if r := c.upload("unpack", any_{"path": folder, "user": fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())}, archiveOf(entries...)); r.Error != nil {
		t.Fatal(r.Error)
	}
	for _, name := range []string{"file", "hard", "soft"} {
		text, err := os.ReadFile(filepath.Join(folder, "real", name))
		if err != nil || string(text) != "\x00\x00\x00" {
			t.Fatalf("%s: %q %v", name, text, err)
		}
	}
	if info, err := os.Stat(filepath.Join(folder, "real/new")); err != nil || info.Mode() != os.ModeDir|0o755 {
		t.Fatalf("%v %v", info, err)
	}
}

func TestALinkIsRemovedAndNotWhatItLeadsTo(t *testing.T) {
	c, folder, outside := connectTest(t), t.TempDir(), t.TempDir()
	writeTest(t, filepath.Join(outside, "kept"), "x")
	for _, where := range []any_{{"path": filepath.Join(folder, "a")}, {"path": "a", "root": folder}} {
		os.MkdirAll(filepath.Join(folder, "a/b/c"), 0o755)
		os.Symlink(outside, filepath.Join(folder, "a/b/link"))
		where["recursive"] = true
		if r := c.call("remove", where); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Fatalf("%v", left)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Fatal(err)
	}
}

func TestNoRaceLeadsOutOfTheFolder(t *testing.T) {
	c, outside := connectTest(t), t.TempDir()
	writeTest(t, filepath.Join(outside, "secret"), "s3cret")
	folder := t.TempDir()
	place, kept, link := filepath.Join(folder, "d"), filepath.Join(folder, "kept"), filepath.Join(folder, "link")
	os.MkdirAll(place, 0o755)
	writeTest(t, filepath.Join(place, "secret"), "own")
	os.Symlink(outside, link)
	// A program exchanges the folder for a link to another one, and back, all the time.
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(place, kept)
			os.Rename(link, place)
			os.Rename(place, link)
			os.Rename(kept, place)
		}
	}()
	var entries []tar.Header
	for i := range 90 {
		entries = append(entries, tar.Header{Name: "d/" + string(rune('a'+i%26)) + strings.Repeat("x", i), Size: 1})
	}
	archive := archiveOf(entries...)
	for range 8 {
		c.upload("unpack", any_{"path": folder}, archive)
		c.upload("write", any_{"root": folder, "path": "d/written", "mkdirs": true}, []byte("x"))
		c.call("mkdir", any_{"root": folder, "path": "d/made", "parents": true})
		c.call("remove", any_{"root": folder, "path": "d/secret"})
		for _, r := range []reply{c.run("pack", any_{"root": folder, "path": "/"}), c.run("read", any_{"root": folder, "path": "d/secret"})} {
			if bytes.Contains(r.data, []byte("s3cret")) {
				t.Fatal("a file from outside was read")
			}
		}
	}
	close(stop)
	<-stopped
	if found, _ := os.ReadDir(outside); len(found) != 1 {
		t.Fatalf("%v", found)
	}
	if text, _ := os.ReadFile(filepath.Join(outside, "secret")); string(text) != "s3cret" {
		t.Fatalf("%q", text)
	}
}

func TestAPackedFolderIsUnpackedTheSame(t *testing.T) {
	c, from, to := connectTest(t), t.TempDir(), t.TempDir()
	os.MkdirAll(filepath.Join(from, "a/b"), 0o755)
	writeTest(t, filepath.Join(from, "a/b/file"), strings.Repeat("text", 30_000))
	os.Symlink("b/file", filepath.Join(from, "a/link"))
	syscall.Mkfifo(filepath.Join(from, "pipe"), 0o600)
	packed := c.run("pack", any_{"path": from})
	if r := c.upload("unpack", any_{"path": to}, packed.data); r.Error != nil {
		t.Fatal(r.Error)
	}
	text, err := os.ReadFile(filepath.Join(to, "a/link"))
	if err != nil || len(text) != 120_000 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
}

func TestPipesAndDevicesAreNotRead(t *testing.T) {
	c, folder := connectTest(t), t.TempDir()
	syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600)
	wantCode(t, c.run("read", any_{"path": filepath.Join(folder, "pipe")}), "not_a_file")
	wantCode(t, c.run("read", any_{"path": "/dev/zero"}), "not_a_file")
	wantCode(t, c.run("read", any_{"path": folder}), "is_a_directory")
}

func TestChangesBelowAFolderAreReported(t *testing.T) {
	c, folder := connectTest(t), t.TempDir()
	os.Mkdir(filepath.Join(folder, "old"), 0o755)
	id := c.open("watch", any_{"path": folder, "recursive": true})
	c.until(id, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
	writeTest(t, filepath.Join(folder, "old/file"), "x")
	os.Mkdir(filepath.Join(folder, "new"), 0o755)
	r := c.until(id, func(r *reply, _ frame) bool { return bytes.Contains(r.data, []byte(`"path":"new"`)) })
	if !bytes.Contains(r.data, []byte(`{"event":"create","path":"old/file"}`)) {
		t.Fatalf("%s", r.data)
	}
	os.Rename(filepath.Join(folder, "old/file"), filepath.Join(folder, "new/name"))
	c.until(id, func(r *reply, _ frame) bool {
		return bytes.Contains(r.data, []byte(`{"event":"rename_to","path":"new/name"}`))
	})
}
