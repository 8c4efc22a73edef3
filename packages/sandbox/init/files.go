package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"
)

type fileInfo struct {
	Path       string `json:"path"`
	Type       string `json:"type"`
	Size       int64  `json:"size"`
	Mode       uint32 `json:"mode"`
	Uid        uint32 `json:"uid"`
	Gid        uint32 `json:"gid"`
	ModifiedMs int64  `json:"modified_ms"`
	Target     string `json:"target,omitempty"` // of a link
	*exactInfo
}

// exactInfo is what an exact copy also has to be compared by.
type exactInfo struct {
	ModifiedNs int64  `json:"modified_ns"`          // beyond modified_ms
	ChangedMs  int64  `json:"changed_ms"`           // of the file or of what is known about it; no program can set it
	Inode      string `json:"inode,omitempty"`      // of a file with several names: the same for all of them
	Attributes string `json:"attributes,omitempty"` // their digest
	PathBytes  []byte `json:"path_bytes,omitempty"` // if the path is not UTF-8, as which JSON shows it
}

// describeExactly also shows all bits of the mode. The name is an absolute path.
func describeExactly(in tree, name, shown string, info fs.FileInfo) fileInfo {
	d := describe(in, name, shown, info)
	stat := info.Sys().(*syscall.Stat_t)
	d.Mode = stat.Mode & 0o7777
	d.exactInfo = &exactInfo{ModifiedNs: int64(info.ModTime().Nanosecond()) % 1e6, ChangedMs: time.Unix(stat.Ctim.Unix()).UnixMilli()}
	if d.Type == "file" || d.Type == "directory" {
		// Attributes that cannot be read are those of a file that is gone.
		attributes, _, _ := readAttributes(name)
		d.Attributes = digestOf(attributes)
	}
	if !utf8.ValidString(shown) {
		d.PathBytes = []byte(shown)
	}
	if !info.IsDir() && stat.Nlink > 1 {
		d.Inode = fmt.Sprintf("%x:%x", stat.Dev, stat.Ino)
	}
	return d
}

func describe(in tree, name, shown string, info fs.FileInfo) fileInfo {
	d := fileInfo{
		Path: shown, Type: typeOf(info.Mode()), Size: info.Size(), Mode: uint32(info.Mode().Perm()), ModifiedMs: info.ModTime().UnixMilli(),
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		d.Uid, d.Gid = owner.Uid, owner.Gid
	}
	if d.Type == "link" {
		d.Target, _ = in.Readlink(name)
	}
	return d
}

func typeOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "link"
	}
	return "other"
}

type statRequest struct {
	place
	Follow bool `json:"follow"`
}

func statFile(_ *server, _ *stream, r statRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	look := in.Lstat
	if r.Follow {
		look = in.Stat
	}
	info, err := look(name)
	if err != nil {
		return nil, err
	}
	return describe(in, name, r.Path, info), nil
}

type readRequest struct {
	place
	Offset int64  `json:"offset"`
	Length *int64 `json:"length"`
}

func readFile(_ *server, on *stream, r readRequest) (any, error) {
	if r.Offset < 0 || r.Length != nil && *r.Length < 0 {
		return nil, failed("invalid_request", "offset and length cannot be negative")
	}
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	file, info, err := openRegular(in, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if r.Offset > 0 {
		if _, err := file.Seek(r.Offset, io.SeekStart); err != nil {
			return nil, err
		}
	}
	if err := on.answer(describe(in, name, r.Path, info)); err != nil {
		return nil, err
	}
	length := int64(math.MaxInt64)
	if r.Length != nil {
		length = *r.Length
	}
	sent, err := io.CopyBuffer(onlyWriter{on}, onlyReader{io.LimitReader(file, length)}, make([]byte, maxData))
	return map[string]int64{"bytes": sent}, err
}

// onlyWriter makes io.CopyBuffer use the buffer.
type onlyWriter struct{ io.Writer }

// openRegular refuses pipes and devices, whose reads may never end.
func openRegular(in tree, name string) (*os.File, fs.FileInfo, error) {
	file, err := in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = failed("is_a_directory", "%q is a directory", name)
	} else if err == nil && !info.Mode().IsRegular() {
		err = failed("not_a_file", "%q is a pipe, socket or device; only files can be read", name)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

type writeRequest struct {
	place
	Mode   *uint32 `json:"mode"`
	Mkdirs bool    `json:"mkdirs"`
	Append bool    `json:"append"`
	User   string  `json:"user"` // the owner of a new file
}

func writeFile(_ *server, on *stream, r writeRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if r.Mkdirs {
		if err := in.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
	}
	if r.Append {
		return appendToFile(in, name, on, r)
	}
	return replaceFile(in, name, on, r)
}

func appendToFile(in tree, name string, on *stream, r writeRequest) (any, error) {
	file, err := in.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, modeOf(r.Mode, 0o644))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, failed("not_a_file", "%q is not a regular file", name)
	}
	written, err := io.Copy(file, onlyReader{on})
	return map[string]int64{"bytes": written}, err
}

// replaceFile writes to a new file and renames it, so that nobody sees a half-written file.
func replaceFile(in tree, name string, on *stream, r writeRequest) (any, error) {
	name = followLinks(in, name)
	mode := modeOf(r.Mode, 0o644)
	uid, gid := -1, -1
	if old, err := in.Stat(name); err == nil {
		if !old.Mode().IsRegular() {
			return nil, failed("not_a_file", "%q exists and is not a regular file", name)
		}
		mode = modeOf(r.Mode, old.Mode().Perm())
		owner := old.Sys().(*syscall.Stat_t)
		uid, gid = int(owner.Uid), int(owner.Gid)
	}
	if r.User != "" {
		who, err := findAccount(r.User)
		if err != nil {
			return nil, err
		}
		uid, gid = int(who.credential.Uid), int(who.credential.Gid)
	}
	folder, _ := filepath.Split(name)
	temporary := folder + ".aenv-" + rand.Text()
	file, err := in.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	written, err := io.Copy(file, onlyReader{on})
	if err == nil && uid >= 0 {
		err = file.Chown(uid, gid)
	}
	if err == nil {
		err = file.Chmod(mode)
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = in.Rename(temporary, name)
	}
	if err != nil {
		in.Remove(temporary)
		return nil, err
	}
	return map[string]int64{"bytes": written}, nil
}

// followLinks returns the file that a link leads to, so that the file is replaced and not the link.
func followLinks(in tree, name string) string {
	for range 40 { // as many as Linux follows
		target, err := in.Readlink(name)
		if err != nil {
			return name
		}
		if !filepath.IsAbs(target) {
			folder, _ := filepath.Split(name) // filepath.Join would remove "..", which is wrong after a link to a folder
			target = folder + target
		}
		name = target
	}
	return name
}

func modeOf(given *uint32, otherwise os.FileMode) os.FileMode {
	if given == nil {
		return otherwise
	}
	return os.FileMode(*given) & fs.ModePerm
}

type mkdirRequest struct {
	place
	Mode    *uint32 `json:"mode"`
	Parents bool    `json:"parents"` // also the folders above; an existing folder is not an error
}

func makeDirectory(_ *server, _ *stream, r mkdirRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if r.Parents {
		return struct{}{}, in.MkdirAll(name, modeOf(r.Mode, 0o755))
	}
	return struct{}{}, in.Mkdir(name, modeOf(r.Mode, 0o755))
}

type removeRequest struct {
	place
	Recursive bool `json:"recursive"`
}

func removeFile(_ *server, _ *stream, r removeRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if name == "/" || name == "." {
		return nil, failed("invalid_request", "the root itself cannot be removed")
	}
	if !r.Recursive {
		return struct{}{}, in.Remove(name)
	}
	if _, err := in.Lstat(name); err != nil {
		return nil, err
	}
	return struct{}{}, in.RemoveAll(name)
}

type renameRequest struct {
	place
	To string `json:"to"`
}

func renameFile(_ *server, _ *stream, r renameRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	to, other, err := place{Path: r.To, Root: r.Root}.open()
	if err != nil {
		return nil, err
	}
	to.Close()
	return struct{}{}, in.Rename(name, other)
}

type listRequest struct {
	place
	Recursive bool `json:"recursive"`
	Limit     int  `json:"limit"`
	Exact     bool `json:"exact"` // for the comparison of two sandboxes
}

// listFiles sends one line of JSON per file, in order. Paths are relative to the listed folder. Links are not followed.
func listFiles(_ *server, on *stream, r listRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	show := describe
	if r.Exact {
		if r.Root != "" {
			return nil, failed("invalid_request", "an exact list is of an absolute path, and has no root")
		}
		show = describeExactly
	}
	entries, err := in.ReadDir(name)
	if err != nil {
		return nil, err
	}
	if err := on.answer(struct{}{}); err != nil {
		return nil, err
	}
	to := bufio.NewWriterSize(on, maxData)
	lines := json.NewEncoder(to)
	count, isCut := 0, false
	var walk func(folder, shown string, entries []fs.FileInfo) error
	walk = func(folder, shown string, entries []fs.FileInfo) error {
		for _, info := range entries {
			if r.Limit > 0 && count >= r.Limit {
				isCut = true
				return nil
			}
			count++
			path, below := filepath.Join(folder, info.Name()), filepath.Join(shown, info.Name())
			if err := lines.Encode(show(in, path, below, info)); err != nil {
				return err
			}
			if !r.Recursive || !info.IsDir() {
				continue
			}
			inside, err := in.ReadDir(path)
			if err != nil {
				continue // removed or replaced meanwhile
			}
			if err := walk(path, below, inside); err != nil || isCut {
				return err
			}
		}
		return nil
	}
	if err := walk(name, "", entries); err != nil {
		return nil, err
	}
	return map[string]bool{"truncated": isCut}, to.Flush()
}
