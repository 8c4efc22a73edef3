package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

type packRequest struct{ place }

// packFiles sends a folder, or one file, as a tar archive: files, folders and links; no pipes, sockets and devices.
func packFiles(_ *server, on *stream, r packRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := on.answer(struct{}{}); err != nil {
		return nil, err
	}
	to := tar.NewWriter(onlyWriter{on})
	if info.IsDir() {
		err = packFolder(to, in, name, "")
	} else {
		err = packEntry(to, in, name, filepath.Base(name), info)
	}
	if err != nil {
		return nil, err
	}
	return struct{}{}, to.Close()
}

func packFolder(to *tar.Writer, in tree, folder, shown string) error {
	entries, err := in.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, info := range entries {
		path, below := filepath.Join(folder, info.Name()), filepath.Join(shown, info.Name())
		if err := packEntry(to, in, path, below, info); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if info.IsDir() {
			if err := packFolder(to, in, path, below); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func packEntry(to *tar.Writer, in tree, path, shown string, info fs.FileInfo) error {
	switch typeOf(info.Mode()) {
	case "directory":
		return writeHeader(to, info, shown+"/", "")
	case "link":
		target, err := in.Readlink(path)
		if err != nil {
			return err
		}
		return writeHeader(to, info, shown, target)
	case "file":
		file, current, err := openRegular(in, path)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := writeHeader(to, current, shown, ""); err != nil {
			return err
		}
		// A file that shrinks meanwhile is filled with zeros: the header has promised its size.
		_, err = io.Copy(to, io.LimitReader(io.MultiReader(file, zeros{}), current.Size()))
		return err
	}
	return nil
}

func writeHeader(to *tar.Writer, info fs.FileInfo, name, target string) error {
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name = name
	header.Uname, header.Gname = "", ""
	return to.WriteHeader(header)
}

type zeros struct{}

func (zeros) Read(to []byte) (int, error) {
	clear(to)
	return len(to), nil
}

type unpackRequest struct {
	place
	User  string `json:"user"`  // the owner of what is unpacked
	Cache string `json:"cache"` // a file that keeps the archive for unpackCached
}

// unpackFiles writes a tar archive into a folder. Nothing is written outside of the folder, whatever links the archive or the folder
// contain; links that lead out, and devices, are refused.
func unpackFiles(_ *server, on *stream, r unpackRequest) (any, error) {
	from, done := kept(onlyReader{on}, r.Cache)
	count, err := r.unpack(r.User, from)
	done(err == nil)
	return map[string]int{"entries": count}, err
}

// unpack reads the archive to its end. It returns the number of entries.
func (p place) unpack(user string, archive io.Reader) (int, error) {
	in, name, err := p.open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	uid, gid := -1, -1
	if user != "" {
		who, err := findAccount(user)
		if err != nil {
			return 0, err
		}
		uid, gid = int(who.credential.Uid), int(who.credential.Gid)
	}
	if err := in.MkdirAll(name, 0o755); err != nil {
		return 0, err
	}
	folder, err := in.OpenFolder(name)
	if err != nil {
		return 0, err
	}
	defer folder.Close()
	return eachEntry(archive, func(header *tar.Header, from io.Reader) error { return unpackEntry(folder, header, from, uid, gid) })
}

// eachEntry reads the archive to its end. It returns the number of entries. The names are clean, and lead nowhere else.
func eachEntry(archive io.Reader, do func(*tar.Header, io.Reader) error) (int, error) {
	from := tar.NewReader(archive)
	for count := 0; ; count++ {
		header, err := from.Next()
		if err == io.EOF {
			// Padding may follow the end of the archive; the client waits until it is taken.
			_, err := io.Copy(io.Discard, archive)
			return count, err
		}
		if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, failed("invalid_archive", "entry %d of the archive is damaged or cut off: %v", count+1, err)
		}
		if err != nil {
			return 0, err
		}
		name := filepath.Clean(header.Name)
		if !filepath.IsLocal(name) {
			return 0, failed("outside_root", "the archive's entry %q is outside of the folder", header.Name)
		}
		if name == "." {
			continue
		}
		header.Name = name
		if err := do(header, from); err != nil {
			return 0, err
		}
	}
}

// unpackEntry does all in the folder of the entry, which it opens once.
func unpackEntry(into *folder, header *tar.Header, from io.Reader, uid, gid int) error {
	return into.in(header.Name, "unpack", locating{creates: 0o755}, func(at *location) error {
		if header.Typeflag != tar.TypeDir {
			if err := removeAt(at.fd(), at.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := createEntry(into, at, header, from); err != nil {
			return err
		}
		if uid >= 0 {
			if err := syscall.Fchownat(at.fd(), at.name, uid, gid, atNoFollow); err != nil {
				return err
			}
		}
		if header.Typeflag == tar.TypeReg {
			return touchAt(at.fd(), at.name, header.ModTime, header.ModTime)
		}
		return nil
	})
}

func createEntry(into *folder, at *location, header *tar.Header, from io.Reader) error {
	mode := os.FileMode(header.Mode) & fs.ModePerm // no set-user-id
	switch header.Typeflag {
	case tar.TypeDir:
		if info, err := lookAt(at.folder, at.name); err != nil || !info.IsDir() {
			if err := at.mkdir(mode); err != nil {
				return err
			}
		}
		return at.chmod(mode) // the umask does not count
	case tar.TypeReg:
		return unpackFile(at, mode, from)
	case tar.TypeSymlink:
		if filepath.IsAbs(header.Linkname) || !filepath.IsLocal(filepath.Join(filepath.Dir(at.path), header.Linkname)) {
			return failed("outside_root", "the archive's link %q leads to %q, out of the folder", header.Name, header.Linkname)
		}
		return symlinkAt(header.Linkname, at.fd(), at.name)
	case tar.TypeLink:
		if !filepath.IsLocal(header.Linkname) {
			return failed("outside_root", "the archive's hard link %q is to %q, out of the folder", header.Name, header.Linkname)
		}
		return into.in(header.Linkname, "link", locating{}, func(old *location) error {
			return linkAt(old.fd(), old.name, at.fd(), at.name)
		})
	}
	return failed("invalid_archive", "the archive's entry %q is a device or of an unknown type %q", header.Name, header.Typeflag)
}

func unpackFile(at *location, mode os.FileMode, from io.Reader) error {
	file, err := at.open(os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	if err == nil {
		err = file.Chmod(mode)
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}
