package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A location is where a path ends: a name in an open folder. The file itself may not exist.
type location struct {
	folder *os.File
	name   string
	path   string
}

func (l *location) fd() int { return int(l.folder.Fd()) }
func (l *location) close()  { l.folder.Close() }

func (l *location) failure(operation string, err error) error {
	var known *failure
	var named *fs.PathError
	if err == nil || errors.As(err, &known) || errors.As(err, &named) {
		return err
	}
	return &fs.PathError{Op: operation, Path: l.path, Err: err}
}

// open does not follow a link. Not O_DIRECTORY, with which gVisor would.
func (l *location) open(flag int, mode os.FileMode) (*os.File, error) {
	file, err := openAt(l.fd(), l.name, flag&^syscall.O_DIRECTORY|syscall.O_NOFOLLOW, mode)
	if err != nil || flag&syscall.O_DIRECTORY == 0 {
		return file, err
	}
	info, err := file.Stat()
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// look opens a file or link only to find out what it is.
func (l *location) look() (*os.File, fs.FileInfo, error) {
	file, err := openAt(l.fd(), l.name, oPath|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func lookAt(folder *os.File, name string) (fs.FileInfo, error) {
	file, info, err := (&location{folder: folder, name: name}).look()
	if err != nil {
		return nil, err
	}
	return info, file.Close()
}

func (l *location) mkdir(mode os.FileMode) error {
	return syscall.Mkdirat(l.fd(), l.name, uint32(mode.Perm()))
}

// chmod changes a file or folder, and no link. By the descriptor of what was looked at, which may not be readable.
func (l *location) chmod(mode os.FileMode) error {
	file, info, err := l.look()
	if err != nil {
		return err
	}
	defer file.Close()
	if info.Mode().Type() == fs.ModeSymlink {
		return syscall.ELOOP
	}
	return syscall.Chmod("/proc/self/fd/"+strconv.Itoa(int(file.Fd())), uint32(mode.Perm()))
}

func (l *location) removeAll() error {
	err := removeAt(l.fd(), l.name)
	if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	file, err := l.open(os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	for _, name := range names {
		below := &location{folder: file, name: name, path: filepath.Join(l.path, name)}
		if failure := below.removeAll(); failure != nil && !errors.Is(failure, fs.ErrNotExist) {
			return below.failure("remove", failure)
		}
	}
	if err != nil {
		return err
	}
	return removeAt(l.fd(), l.name)
}
