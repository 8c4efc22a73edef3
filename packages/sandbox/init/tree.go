package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A tree is where paths are resolved: all of the sandbox's files, or a folder that no path and no link leads out of.
type tree interface {
	OpenFile(name string, flag int, mode os.FileMode) (*os.File, error)
	OpenFolder(name string) (*folder, error)
	ReadDir(name string) ([]fs.FileInfo, error) // by name; links are not followed
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	Mkdir(name string, mode os.FileMode) error
	MkdirAll(name string, mode os.FileMode) error
	Remove(name string) error
	RemoveAll(name string) error
	Rename(from, to string) error
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
	root, err := openFolder(p.Root)
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
func (wholeTree) OpenFolder(name string) (*folder, error)      { return openFolder(name) }
func (wholeTree) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }
func (wholeTree) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (wholeTree) Readlink(name string) (string, error)         { return os.Readlink(name) }
func (wholeTree) Mkdir(name string, mode os.FileMode) error    { return os.Mkdir(name, mode) }
func (wholeTree) MkdirAll(name string, mode os.FileMode) error { return os.MkdirAll(name, mode) }
func (wholeTree) Remove(name string) error                     { return os.Remove(name) }
func (wholeTree) Rename(from, to string) error                 { return os.Rename(from, to) }
func (wholeTree) Close() error                                 { return nil }

func (wholeTree) ReadDir(name string) ([]fs.FileInfo, error) {
	folder, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, err := folder.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var all []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // else it was removed meanwhile
			all = append(all, info)
		}
	}
	return all, err
}

// RemoveAll removes only what is in the folder: os.RemoveAll would follow links in gVisor, as os.Root does.
func (wholeTree) RemoveAll(name string) error {
	above, err := openFolder(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer above.Close()
	return above.RemoveAll(filepath.Base(name))
}
