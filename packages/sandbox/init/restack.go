package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// The launcher gives a running sandbox another root, either with what the sandbox has changed so far as a layer, or with the files of an image for a
// sandbox that had none. Its init is its only process, and is frozen or has nothing to do. What a process holds open of the former root would still
// be written there, so the root is not exchanged if there is any such file.
//
// A sandbox of gVisor that was not started yet gets another root through the process that will serve its files, and only reads them.

type restackRequest struct {
	rootRequest
	Pid          int  `json:"pid"`            // the init as the machine sees it, or the process that serves the files
	IsFileServer bool `json:"is_file_server"` // its root is a folder of its mount namespace
}

const (
	atRecursive = 0x8000
	// A folder of every sandbox: the new root is mounted there before it becomes the root.
	meanwhile = "/.aenv"
)

// errHalfway says that the sandbox has the new root, and can still reach the former one.
var errHalfway = errors.New("the former root cannot be unmounted")

func restack(r restackRequest) error {
	mounts, err := readMounts(r.Pid)
	if err != nil {
		return err
	}
	if err := assertUnused(r, mounts.root); err != nil {
		return err
	}
	namespace, err := os.Open(processFile(r.Pid, "ns/mnt"))
	if err != nil {
		return err
	}
	defer namespace.Close()
	former, err := os.Open(processFile(r.Pid, "root"))
	if err != nil {
		return err
	}
	defer former.Close()
	overlay, err := newOverlayFor(r)
	if err != nil {
		return err
	}
	defer syscall.Close(overlay)
	exchange := func() (int, error) {
		if err := enterMounts(namespace, former); err != nil {
			return -1, err
		}
		return 0, exchangeRoot(r, overlay, mounts.below)
	}
	if r.Size == 0 {
		_, err = onThread(exchange)
	} else {
		_, err = asOwner(r.HostId, exchange)
	}
	return err
}

func newOverlayFor(r restackRequest) (int, error) {
	if r.Size == 0 {
		return onThread(func() (int, error) { return newOverlay(r.rootRequest, nil) })
	}
	users, err := os.Open(processFile(r.Pid, "ns/user"))
	if err != nil {
		return -1, err
	}
	defer users.Close()
	return asOwner(r.HostId, func() (int, error) { return newOverlay(r.rootRequest, users) })
}

// exchangeRoot makes an overlay the root of this thread's mount namespace and of all processes in it, with what is mounted below the present root.
func exchangeRoot(r restackRequest, overlay int, below []string) error {
	copies := make([]int, 0, len(below))
	defer func() {
		for _, one := range copies {
			syscall.Close(one)
		}
	}()
	for _, target := range below {
		one, _, errno := syscall.Syscall(
			sysOpenTree, atWorkingDirectory, uintptr(unsafe.Pointer(cText(target))), openTreeClone|atRecursive|syscall.O_CLOEXEC)
		if errno != 0 {
			return fmt.Errorf("open_tree %s: %w", target, errno)
		}
		copies = append(copies, int(one))
	}
	if err := moveMount(overlay, atWorkingDirectory, meanwhile); err != nil {
		return err
	}
	err := func() error {
		root, err := os.OpenRoot(meanwhile)
		if err != nil {
			return err
		}
		defer root.Close()
		for index, target := range below {
			point, err := mountPoint(root, strings.TrimPrefix(target, "/"), copies[index])
			if err != nil {
				return err
			}
			err = moveMount(copies[index], point.Fd(), "")
			point.Close()
			if err != nil {
				return err
			}
		}
		if err := writeContent(root, r.rootRequest); err != nil {
			return err
		}
		if r.IsFileServer {
			if err := setAttributes(overlay, attrReadOnly); err != nil {
				return err
			}
		}
		if err := syscall.Fchdir(overlay); err != nil {
			return err
		}
		// The former root is mounted above the new one then, and the path "." leads to it.
		return syscall.PivotRoot(".", ".")
	}()
	if err != nil {
		return errors.Join(err, syscall.Unmount(meanwhile, syscall.MNT_DETACH))
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("%w: %v", errHalfway, err)
	}
	return nil
}

// mountPoint opens the folder or the file of a root at which a mount belongs, and creates it if the files of the root lack it. A link leads nowhere
// else: os.Root follows none out of it.
func mountPoint(root *os.Root, name string, mounted int) (*os.File, error) {
	var status syscall.Stat_t
	if err := syscall.Fstat(mounted, &status); err != nil {
		return nil, err
	}
	if status.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		if err := root.MkdirAll(name, 0o755); err != nil {
			return nil, err
		}
		return root.OpenFile(name, syscall.O_DIRECTORY|os.O_RDONLY, 0)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o644)
}

// enterMounts moves this thread, which must end afterwards and shares its root and working directory with no other, to another mount namespace and
// to a root in it.
func enterMounts(namespace, root *os.File) error {
	if _, _, errno := syscall.RawSyscall(sysSetns, namespace.Fd(), syscall.CLONE_NEWNS, 0); errno != 0 {
		return fmt.Errorf("setns %s: %w", namespace.Name(), errno)
	}
	runtime.KeepAlive(namespace)
	if err := syscall.Fchdir(int(root.Fd())); err != nil {
		return err
	}
	return syscall.Chroot(".")
}

type sandboxMounts struct {
	root  string   // the id of the root's mount
	below []string // where something is mounted directly below it
}

func readMounts(pid int) (sandboxMounts, error) {
	text, err := os.ReadFile(processFile(pid, "mountinfo"))
	if err != nil {
		return sandboxMounts{}, err
	}
	return parseMounts(string(text))
}

func parseMounts(text string) (sandboxMounts, error) {
	var found sandboxMounts
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
			found.root = fields[0]
		}
	}
	if found.root == "" {
		return found, errors.New("the sandbox has no root")
	}
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[1] != found.root || fields[4] == "/" {
			continue
		}
		// The kernel writes special characters as octal numbers; such a path is the sandbox's own and no reason to decode it.
		if strings.Contains(fields[4], `\`) || path.Clean(fields[4]) != fields[4] {
			return found, fmt.Errorf("%w: a mount has the path %s", errUnsupported, fields[4])
		}
		found.below = append(found.below, fields[4])
	}
	return found, nil
}

// assertUnused fails if a process holds anything of a mount but its root folder.
func assertUnused(r restackRequest, mount string) error {
	pid := r.Pid
	root, err := os.Readlink(processFile(pid, "root"))
	if err != nil || root != "/" && !r.IsFileServer {
		return fmt.Errorf("%w: the root of process %d is %s %v", errUnsupported, pid, root, err)
	}
	if cwd, err := os.Readlink(processFile(pid, "cwd")); err != nil || cwd != root {
		return fmt.Errorf("%w: the working directory of process %d is %s %v", errUnsupported, pid, cwd, err)
	}
	files, err := os.ReadDir(processFile(pid, "fd"))
	if err != nil {
		return err
	}
	for _, file := range files {
		target, err := os.Readlink(processFile(pid, "fd/"+file.Name()))
		if err != nil {
			return err
		}
		info, err := os.ReadFile(processFile(pid, "fdinfo/"+file.Name()))
		if err != nil {
			return err
		}
		if strings.HasSuffix(target, "inotify") || mountOf(string(info)) == mount {
			return fmt.Errorf("%w: process %d has opened %s", errUnsupported, pid, target)
		}
	}
	return nil
}

func mountOf(info string) string {
	for _, line := range strings.Split(info, "\n") {
		if id, isMount := strings.CutPrefix(line, "mnt_id:"); isMount {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

func processFile(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}
