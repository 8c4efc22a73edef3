package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A spot is where a path ends: a name in an open folder. The file itself may not exist.
type spot struct {
	folder *os.File
	name   string
	path   string
}

func (s *spot) fd() int { return int(s.folder.Fd()) }
func (s *spot) close()  { s.folder.Close() }

func (s *spot) failure(operation string, err error) error {
	var known *failure
	var named *fs.PathError
	if err == nil || errors.As(err, &known) || errors.As(err, &named) {
		return err
	}
	return &fs.PathError{Op: operation, Path: s.path, Err: err}
}

// open does not follow a link. Not O_DIRECTORY, with which gVisor would.
func (s *spot) open(flag int, mode os.FileMode) (*os.File, error) {
	file, err := openAt(s.fd(), s.name, flag&^syscall.O_DIRECTORY|syscall.O_NOFOLLOW, mode)
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
func (s *spot) look() (*os.File, fs.FileInfo, error) {
	file, err := openAt(s.fd(), s.name, oPath|syscall.O_NOFOLLOW, 0)
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
	file, info, err := (&spot{folder: folder, name: name}).look()
	if err != nil {
		return nil, err
	}
	return info, file.Close()
}

func (s *spot) mkdir(mode os.FileMode) error {
	return syscall.Mkdirat(s.fd(), s.name, uint32(mode.Perm()))
}

// chmod changes a file or folder, and no link. By the descriptor of what was looked at, which may not be readable.
func (s *spot) chmod(mode os.FileMode) error {
	file, info, err := s.look()
	if err != nil {
		return err
	}
	defer file.Close()
	if info.Mode().Type() == fs.ModeSymlink {
		return syscall.ELOOP
	}
	return syscall.Chmod("/proc/self/fd/"+strconv.Itoa(int(file.Fd())), uint32(mode.Perm()))
}

func (s *spot) removeAll() error {
	err := removeAt(s.fd(), s.name)
	if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	file, err := s.open(os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	for _, name := range names {
		below := &spot{folder: file, name: name, path: filepath.Join(s.path, name)}
		if failure := below.removeAll(); failure != nil && !errors.Is(failure, fs.ErrNotExist) {
			return below.failure("remove", failure)
		}
	}
	if err != nil {
		return err
	}
	return removeAt(s.fd(), s.name)
}
