package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A cache is a folder with archives that several sandboxes see, such as a volume of the pods of one node. Programs of all of them can write
// to it, so an archive is used only if its digest is right: the bytes that are unpacked are those that are hashed, and the client uses
// the folder only afterwards.

// Archives that no sandbox has used for this time are removed when another one is added.
const cacheKeeps = 14 * 24 * time.Hour

type unpackCachedRequest struct {
	place
	Cache  string `json:"cache"`  // the file of the archive
	Sha256 string `json:"sha256"` // of the archive, in hex
}

// unpackCached is like unpackFiles with an archive of a cache. If it is not there or not what it should be, the answer says so.
func unpackCached(_ *server, _ *stream, r unpackCachedRequest) (any, error) {
	answer := map[string]bool{"found": false}
	// A pipe would never end, and a link could lead to one.
	file, err := os.OpenFile(r.Cache, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return answer, nil
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return answer, nil
	}
	hash := sha256.New()
	if _, err := r.unpack("", io.TeeReader(file, hash)); err != nil || hex.EncodeToString(hash.Sum(nil)) != r.Sha256 {
		os.Remove(r.Cache)
		return answer, nil
	}
	now := time.Now()
	os.Chtimes(r.Cache, now, now)
	answer["found"] = true
	return answer, nil
}

// kept copies what is read to a file of a cache. A cache that cannot be written to is not an error. `done` adds the file, or removes it.
func kept(from io.Reader, path string) (reader io.Reader, done func(isWhole bool)) {
	if path == "" {
		return from, func(bool) {}
	}
	part := path + "." + rand.Text()
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return from, func(bool) {}
	}
	to := &optionalWriter{to: file}
	return io.TeeReader(from, to), func(isWhole bool) {
		if file.Close() != nil || to.err != nil || !isWhole || os.Rename(part, path) != nil {
			os.Remove(part)
			return
		}
		prune(filepath.Dir(path), time.Now().Add(-cacheKeeps))
	}
}

// optionalWriter remembers an error instead of returning it.
type optionalWriter struct {
	to  io.Writer
	err error
}

func (w *optionalWriter) Write(data []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.to.Write(data)
	}
	return len(data), nil
}

func prune(folder string, before time.Time) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}
