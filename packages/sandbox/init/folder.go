package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	maxLinks = 40 // as many as Linux follows
	maxDepth = 255
)

// A folder is a tree that no path and no link leads out of, also while programs of the sandbox exchange folders for links. Each part of a path is
// opened by itself, in the folder above that was opened before. os.Root does the same, but by O_DIRECTORY|O_NOFOLLOW, with which the kernel of
// gVisor follows a link. With O_PATH|O_NOFOLLOW, both kernels open the link itself.
type folder struct{ file *os.File }

// openFolder follows links, as programs of the sandbox do.
func openFolder(path string) (*folder, error) {
	file, err := os.OpenFile(path, oPath|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &folder{file}, nil
}

func (f *folder) Close() error { return f.file.Close() }

func (f *folder) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	at, err := f.locate(name, locating{follows: flag&os.O_EXCL == 0})
	if err != nil {
		return nil, err
	}
	defer at.close()
	file, err := at.open(flag, mode)
	return file, at.failure("open", err)
}

func (f *folder) OpenFolder(name string) (*folder, error) {
	at, err := f.locate(name, locating{follows: true})
	if err != nil {
		return nil, err
	}
	defer at.close()
	file, info, err := at.look()
	if err != nil {
		return nil, at.failure("open", err)
	}
	if !info.IsDir() {
		file.Close()
		return nil, at.failure("open", syscall.ENOTDIR)
	}
	return &folder{file}, nil
}

func (f *folder) ReadDir(name string) ([]fs.FileInfo, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	slices.Sort(names)
	var all []fs.FileInfo
	for _, entry := range names {
		if info, err := lookAt(file, entry); err == nil { // else it was removed meanwhile
			all = append(all, info)
		}
	}
	return all, err
}

func (f *folder) Stat(name string) (fs.FileInfo, error)  { return f.stat(name, locating{follows: true}) }
func (f *folder) Lstat(name string) (fs.FileInfo, error) { return f.stat(name, locating{}) }

func (f *folder) stat(name string, how locating) (fs.FileInfo, error) {
	at, err := f.locate(name, how)
	if err != nil {
		return nil, err
	}
	defer at.close()
	info, err := lookAt(at.folder, at.name)
	if err == nil && how.follows && info.Mode().Type() == fs.ModeSymlink {
		err = syscall.ELOOP // it became a link just now
	}
	return info, at.failure("stat", err)
}

func (f *folder) Readlink(name string) (target string, err error) {
	err = f.in(name, "readlink", locating{}, func(at *location) error {
		target, err = readLinkAt(at.fd(), at.name)
		return err
	})
	return target, err
}

func (f *folder) Mkdir(name string, mode os.FileMode) error {
	return f.in(name, "mkdir", locating{}, func(at *location) error { return at.mkdir(mode) })
}

// MkdirAll also creates the folders above. An existing folder is no error.
func (f *folder) MkdirAll(name string, mode os.FileMode) error {
	return f.in(name, "mkdir", locating{follows: true, creates: mode}, func(at *location) error {
		err := at.mkdir(mode)
		if err != syscall.EEXIST {
			return err
		}
		if info, failure := lookAt(at.folder, at.name); failure == nil && info.IsDir() {
			return nil
		}
		return err
	})
}

func (f *folder) Remove(name string) error {
	return f.in(name, "remove", locating{}, func(at *location) error { return removeAt(at.fd(), at.name) })
}

func (f *folder) RemoveAll(name string) error {
	err := f.in(name, "remove", locating{}, (*location).removeAll)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Rename does not replace a folder, as os.Rename does not.
func (f *folder) Rename(from, to string) error {
	return f.in(from, "rename", locating{}, func(old *location) error {
		return f.in(to, "rename", locating{}, func(at *location) error {
			if info, err := lookAt(at.folder, at.name); err == nil && info.IsDir() {
				return syscall.EEXIST
			}
			return syscall.Renameat(old.fd(), old.name, at.fd(), at.name)
		})
	})
}

func (f *folder) in(name, operation string, how locating, run func(*location) error) error {
	at, err := f.locate(name, how)
	if err != nil {
		return err
	}
	defer at.close()
	return at.failure(operation, run(at))
}

type locating struct {
	follows bool        // if the last part is a link, to where it leads
	creates os.FileMode // of folders on the way that are missing; 0: they are an error
}

// locate resolves all parts of a path but the last one, and links as long as they lead to what is in the folder.
func (f *folder) locate(path string, how locating) (*location, error) {
	fail := func(err error) (*location, error) { return nil, &fs.PathError{Op: "open", Path: path, Err: err} }
	top, err := openAt(int(f.file.Fd()), ".", oPath|syscall.O_DIRECTORY, 0)
	if err != nil {
		return fail(err)
	}
	trail := []*os.File{top} // the folders on the way
	defer func() {
		for _, one := range trail {
			one.Close()
		}
	}()
	end := func(name string) (*location, error) {
		here := trail[len(trail)-1]
		trail = trail[:len(trail)-1]
		return &location{folder: here, name: name, path: path}, nil
	}
	for parts, turns := partsOf(path), 0; len(parts) > 0; {
		part, rest := parts[0], parts[1:]
		if part == ".." {
			if len(trail) == 1 {
				return nil, failed("outside_root", "%q leads out of its folder", path)
			}
			trail[len(trail)-1].Close()
			trail, parts = trail[:len(trail)-1], rest
			continue
		}
		isLast := len(rest) == 0
		if isLast && !how.follows {
			return end(part)
		}
		here := trail[len(trail)-1]
		file, err := openAt(int(here.Fd()), part, oPath|syscall.O_NOFOLLOW, 0)
		if err == syscall.ENOENT && isLast {
			return end(part)
		}
		if turns++; turns > maxLinks+maxDepth || len(trail) > maxDepth {
			err = syscall.ELOOP // or somebody removes folders as fast as they are created
		}
		if err == syscall.ENOENT && how.creates != 0 {
			if err = syscall.Mkdirat(int(here.Fd()), part, uint32(how.creates.Perm())); err == nil || err == syscall.EEXIST {
				continue
			}
		}
		if err != nil {
			file.Close() // of nil, an error
			return fail(err)
		}
		info, err := file.Stat()
		switch {
		case err != nil:
		case info.Mode().Type() == fs.ModeSymlink:
			var target string
			if target, err = readLinkAt(int(file.Fd()), ""); err == nil && filepath.IsAbs(target) {
				err = failed("outside_root", "%q leads out of its folder, to %q", path, target)
			}
			parts = append(partsOf(target), rest...)
			file.Close()
		case isLast:
			file.Close()
			return end(part)
		case info.IsDir():
			trail, parts = append(trail, file), rest
		default:
			err = syscall.ENOTDIR
		}
		if err != nil {
			file.Close()
			return fail(err)
		}
	}
	return end(".")
}

// partsOf keeps "..", which is another folder after a link.
func partsOf(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" || part == "." })
}
