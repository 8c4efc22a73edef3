package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A tree is where paths are resolved: all of the sandbox's files, or a folder that no path and no link leads out of.
// os.Root resolves each part of a path by itself, so it is safe also while the sandbox's programs exchange folders for links.
type tree interface {
	OpenFile(name string, flag int, mode os.FileMode) (*os.File, error)
	OpenRoot(name string) (*os.Root, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	Mkdir(name string, mode os.FileMode) error
	MkdirAll(name string, mode os.FileMode) error
	Remove(name string) error
	RemoveAll(name string) error
	Rename(from, to string) error
	Lchown(name string, uid, gid int) error
	Chtimes(name string, accessed, modified time.Time) error
	Close() error
}

type place struct {
	Path string `json:"path"`
	Root string `json:"root"` // if set, the path is inside of this folder, also if it begins with a slash
}

// open returns the tree of a path, and the path's name in it.
func (p place) open() (tree, string, error) {
	if strings.ContainsRune(p.Path, 0) || strings.ContainsRune(p.Root, 0) {
		return nil, "", failed("invalid_request", "the path %q contains a null character", p.Path)
	}
	if p.Root == "" {
		if !filepath.IsAbs(p.Path) {
			return nil, "", failed("invalid_request", "the path %q is not absolute, and there is no root", p.Path)
		}
		return wholeTree{}, filepath.Clean(p.Path), nil
	}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, "", err
	}
	name := filepath.Clean(strings.TrimLeft(p.Path, "/"))
	return root, name, nil
}

// wholeTree follows links wherever they lead, as programs of the sandbox do.
type wholeTree struct{}

func (wholeTree) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, mode)
}
func (wholeTree) OpenRoot(name string) (*os.Root, error)       { return os.OpenRoot(name) }
func (wholeTree) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }
func (wholeTree) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (wholeTree) Readlink(name string) (string, error)         { return os.Readlink(name) }
func (wholeTree) Mkdir(name string, mode os.FileMode) error    { return os.Mkdir(name, mode) }
func (wholeTree) MkdirAll(name string, mode os.FileMode) error { return os.MkdirAll(name, mode) }
func (wholeTree) Remove(name string) error                     { return os.Remove(name) }
func (wholeTree) RemoveAll(name string) error                  { return os.RemoveAll(name) }
func (wholeTree) Rename(from, to string) error                 { return os.Rename(from, to) }
func (wholeTree) Lchown(name string, uid, gid int) error       { return os.Lchown(name, uid, gid) }
func (wholeTree) Chtimes(name string, accessed, m time.Time) error {
	return os.Chtimes(name, accessed, m)
}
func (wholeTree) Close() error { return nil }
