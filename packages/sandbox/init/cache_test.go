package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func archiveWith(t *testing.T, content string) []byte {
	t.Helper()
	var archive bytes.Buffer
	to := tar.NewWriter(&archive)
	if err := to.WriteHeader(&tar.Header{Name: "main.js", Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// An archive is kept when it was unpacked, used again if it is unchanged, and never if anybody has changed it.
func TestCacheIsVerified(t *testing.T) {
	folder, cache := t.TempDir(), t.TempDir()
	archive := archiveWith(t, "good")
	digest := sha256.Sum256(archive)
	file := filepath.Join(cache, "archive.tar")
	unpackInto := func(name string) bool {
		request := unpackCachedRequest{place: place{Path: filepath.Join(folder, name)}, Cache: file, Sha256: hex.EncodeToString(digest[:])}
		answer, err := unpackCached(nil, nil, request)
		if err != nil {
			t.Fatal(err)
		}
		return answer.(map[string]bool)["found"]
	}
	if unpackInto("empty") {
		t.Error("an archive that is not there was found")
	}
	old := filepath.Join(cache, "old.tar")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*cacheKeeps)); err != nil {
		t.Fatal(err)
	}
	from, done := kept(bytes.NewReader(archive), file)
	if _, err := (place{Path: filepath.Join(folder, "sent")}).unpack("", from); err != nil {
		t.Fatal(err)
	}
	done(true)
	if entries, _ := os.ReadDir(cache); len(entries) != 1 || entries[0].Name() != "archive.tar" {
		t.Errorf("the cache has %v", entries)
	}
	if !unpackInto("kept") {
		t.Error("the kept archive was not used")
	}
	if content, _ := os.ReadFile(filepath.Join(folder, "kept/main.js")); string(content) != "good" {
		t.Errorf("it has %q", content)
	}
	for name, poison := range map[string][]byte{"another": archiveWith(t, "evil"), "longer": append(archive, 1), "damaged": []byte("x")} {
		if err := os.WriteFile(file, poison, 0o644); err != nil {
			t.Fatal(err)
		}
		if unpackInto(name) {
			t.Errorf("%s archive was used", name)
		}
		if _, err := os.Lstat(file); !os.IsNotExist(err) {
			t.Errorf("%s archive was kept", name)
		}
	}
	if err := os.Symlink(filepath.Join(folder, "kept/main.js"), file); err != nil {
		t.Fatal(err)
	}
	if unpackInto("link") {
		t.Error("a link was followed")
	}
	// The cache folder cannot be written to.
	from, done = kept(bytes.NewReader(archive), filepath.Join(cache, "missing/archive.tar"))
	if _, err := (place{Path: filepath.Join(folder, "unkept")}).unpack("", from); err != nil {
		t.Fatal(err)
	}
	done(true)
}
