package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An exact copy of files has all that a file system keeps: owners, every bit of the mode, access control lists and attributes, times to the
// nanosecond, hard links and holes. `list` with `exact` shows where two sandboxes differ, `export` reads files, and `import` writes them.

const (
	attributeRecord = "SCHILY.xattr." // as GNU tar names it
	sparseRecord    = "AENV.size"     // the size of a file whose content in the archive is its parts, without the holes between them
	maxAttributes   = 512 << 10       // of one file: an archive has room for a mebibyte
)

type exportRequest struct{}

// exportFiles receives absolute paths, each ended by a zero byte, and sends each file, folder, link or pipe by itself, in this order. What is not
// there is left out, and so are sockets and devices.
func exportFiles(_ *server, on *stream, _ exportRequest) (any, error) {
	if err := on.answer(struct{}{}); err != nil {
		return nil, err
	}
	paths, buffer := bufio.NewReader(onlyReader{on}), bufio.NewWriterSize(on, maxData)
	to := tar.NewWriter(buffer)
	for {
		path, err := paths.ReadString(0)
		if err == io.EOF {
			return struct{}{}, errors.Join(to.Close(), buffer.Flush())
		}
		if err != nil {
			return nil, err
		}
		if err := exportFile(to, strings.TrimSuffix(path, "\x00")); err != nil {
			return nil, err
		}
	}
}

func exportFile(to *tar.Writer, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	target := ""
	var content *os.File
	switch typeOf(info.Mode()) {
	case "file":
		if content, info, err = openRegular(wholeTree{}, path); err != nil {
			return nil
		}
		defer content.Close()
	case "link":
		if target, err = os.Readlink(path); err != nil {
			return nil
		}
	case "other":
		if info.Mode().Type() != fs.ModeNamedPipe {
			return nil
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil
	}
	header.Name, header.Uname, header.Gname, header.ChangeTime = strings.TrimLeft(path, "/"), "", "", time.Time{}
	header.Format, header.PAXRecords = tar.FormatPAX, map[string]string{}
	if target == "" {
		attributes, size, err := readAttributes(path)
		if err != nil || size > maxAttributes {
			return nil
		}
		for name, value := range attributes {
			header.PAXRecords[attributeRecord+escapedName.Replace(name)] = value
		}
	}
	if content == nil {
		return to.WriteHeader(header)
	}
	switch stat := info.Sys().(*syscall.Stat_t); {
	case stat.Blocks*512 < header.Size:
		return exportParts(to, header, content, partsOfFile(content, header.Size))
	case header.Size >= 1<<20 && stat.Blocks == (header.Size+511)/512:
		// gVisor does not know holes, and says this of every file. Of another file, the last block is full.
		return exportParts(to, header, content, partsByContent(content, header.Size))
	}
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	return copyPart(to, content, 0, header.Size)
}

// A name may contain what ends the key of a record.
var escapedName, plainName = strings.NewReplacer("%", "%25", "=", "%3D"), strings.NewReplacer("%25", "%", "%3D", "=")

type filePart struct{ At, Size int64 }

const partBytes = 16

// exportParts writes a file without its holes: for each part its offset and its size, and then its content.
func exportParts(to *tar.Writer, header *tar.Header, file *os.File, parts []filePart) error {
	header.PAXRecords[sparseRecord] = strconv.FormatInt(header.Size, 10)
	header.Size = 0
	for _, part := range parts {
		header.Size += partBytes + part.Size
	}
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	for _, part := range parts {
		if err := binary.Write(to, binary.BigEndian, part); err != nil {
			return err
		}
		if err := copyPart(to, file, part.At, part.Size); err != nil {
			return err
		}
	}
	return nil
}

// copyPart fills up with zeros what is missing because the file shrinks meanwhile: the header has promised the size.
func copyPart(to io.Writer, file *os.File, at, size int64) error {
	_, err := io.Copy(to, io.LimitReader(io.MultiReader(io.NewSectionReader(file, at, size), zeros{}), size))
	return err
}

const (
	seekData = 3
	seekHole = 4
)

// partsOfFile returns what is not a hole.
func partsOfFile(file *os.File, size int64) (parts []filePart) {
	for end := int64(0); end < size; {
		begin, err := file.Seek(end, seekData)
		if errors.Is(err, syscall.ENXIO) || err == nil && begin >= size {
			return parts
		}
		if err != nil {
			return []filePart{{0, size}}
		}
		if end, err = file.Seek(begin, seekHole); err != nil || end <= begin || end > size {
			end = size
		}
		parts = append(parts, filePart{begin, end - begin})
	}
	return parts
}

var zeroBlock [64 << 10]byte

// partsByContent takes blocks of zeros for holes.
func partsByContent(file *os.File, size int64) (parts []filePart) {
	block := make([]byte, len(zeroBlock))
	for at := int64(0); at < size; at += int64(len(block)) {
		n, err := file.ReadAt(block[:min(int64(len(block)), size-at)], at)
		if n == 0 && err != nil {
			return parts // It has shrunk meanwhile.
		}
		if bytes.Equal(block[:n], zeroBlock[:n]) {
			continue
		}
		if last := len(parts) - 1; last >= 0 && parts[last].At+parts[last].Size == at {
			parts[last].Size += int64(n)
		} else {
			parts = append(parts, filePart{at, int64(n)})
		}
	}
	return parts
}

type importRequest struct{}

// importFiles writes the archive of an exact copy into the root. A device with the number 0:0 removes what is there, as in an overlay. No entry
// is written through a link.
func importFiles(_ *server, on *stream, _ importRequest) (any, error) {
	root, err := openFolder("/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return struct{}{}, root.restore(onlyReader{on})
}

func (f *folder) restore(archive io.Reader) error {
	var folders []*tar.Header
	_, err := eachEntry(archive, func(header *tar.Header, from io.Reader) error {
		if header.Typeflag == tar.TypeDir {
			folders = append(folders, header)
		}
		return f.restoreEntry(header, from)
	})
	if err != nil {
		return err
	}
	// What was written into the folders has changed their times.
	for _, header := range folders {
		err := f.in(header.Name, "restore", locating{}, func(at *location) error { return touch(at, header) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) restoreEntry(header *tar.Header, from io.Reader) error {
	return f.in(header.Name, "restore", locating{creates: 0o755}, func(at *location) error {
		if isWhiteout(header) {
			if err := at.removeAll(); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if header.Typeflag != tar.TypeDir {
			if err := removeAt(at.fd(), at.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		switch header.Typeflag {
		case tar.TypeDir:
			if err := at.mkdir(0o700); err != nil && err != syscall.EEXIST {
				return err
			}
			return restoreDetails(at, header)
		case tar.TypeReg:
			file, err := at.open(os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			if err := errors.Join(restoreContent(file, header, from), file.Close(), restoreDetails(at, header)); err != nil {
				return err
			}
			return touch(at, header)
		case tar.TypeFifo:
			if err := syscall.Mknodat(at.fd(), at.name, syscall.S_IFIFO|0o600, 0); err != nil {
				return err
			}
			if err := restoreDetails(at, header); err != nil {
				return err
			}
			return touch(at, header)
		case tar.TypeSymlink:
			if err := symlinkAt(header.Linkname, at.fd(), at.name); err != nil {
				return err
			}
			if err := syscall.Fchownat(at.fd(), at.name, header.Uid, header.Gid, atNoFollow); err != nil {
				return err
			}
			return touch(at, header)
		case tar.TypeLink: // It is the same file, which has its details already.
			return f.in(header.Linkname, "link", locating{}, func(old *location) error {
				return linkAt(old.fd(), old.name, at.fd(), at.name)
			})
		}
		return failed("invalid_archive", "the archive's entry %q is a device or of an unknown type %q", header.Name, header.Typeflag)
	})
}

func isWhiteout(header *tar.Header) bool {
	return header.Typeflag == tar.TypeChar && header.Devmajor == 0 && header.Devminor == 0
}

func touch(at *location, header *tar.Header) error {
	accessed := header.AccessTime
	if accessed.IsZero() {
		accessed = header.ModTime
	}
	return touchAt(at.fd(), at.name, accessed, header.ModTime)
}

func restoreContent(file *os.File, header *tar.Header, from io.Reader) error {
	text, isSparse := header.PAXRecords[sparseRecord]
	if !isSparse {
		_, err := io.Copy(file, from)
		return err
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return failed("invalid_archive", "the archive's entry %q has the size %q, which is no number", header.Name, text)
	}
	for {
		var part filePart
		err := binary.Read(from, binary.BigEndian, &part)
		if err == io.EOF {
			return file.Truncate(size)
		}
		if err != nil || part.At < 0 || part.Size < 0 || part.At > size-part.Size {
			return failed("invalid_archive", "a part of the archive's entry %q is not within its %d bytes", header.Name, size)
		}
		if _, err := io.CopyN(io.NewOffsetWriter(file, part.At), from, part.Size); err != nil {
			return err
		}
	}
}

// restoreDetails does in this order what would change the result of a later step: a change of the owner removes bits of the mode.
func restoreDetails(at *location, header *tar.Header) error {
	file, _, err := at.look()
	if err != nil {
		return err
	}
	defer file.Close()
	path, mode := "/proc/self/fd/"+strconv.Itoa(int(file.Fd())), uint32(header.Mode&0o7777)
	if err := syscall.Chown(path, header.Uid, header.Gid); err != nil {
		return err
	}
	if err := syscall.Chmod(path, mode); err != nil {
		return err
	}
	wanted := map[string]string{}
	for key, value := range header.PAXRecords {
		if name, is := strings.CutPrefix(key, attributeRecord); is {
			wanted[plainName.Replace(name)] = value
		}
	}
	if err := writeAttributes(path, wanted); err != nil {
		return err
	}
	var now syscall.Stat_t
	if err := syscall.Stat(path, &now); err != nil {
		return err
	}
	if now.Mode&0o7777 != mode {
		return failed("failed", "the mode %o of %q cannot be set: it became %o", mode, header.Name, now.Mode&0o7777)
	}
	return nil
}
