package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// The launcher mounts the roots of sandboxes, whose users may be others than those of the machine. The files keep their owners on disk, so layers
// and snapshots are the same for all sandboxes; the mounts translate the owners. What is mounted on the way disappears with the thread that does it.

type rootRequest struct {
	Lower   []string `json:"lower"`   // the highest layer first
	Changes string   `json:"changes"` // the folder of "upper" and "work"
	Options []string `json:"options"` // of the overlay
	Target  string   `json:"target"`
	HostId  int      `json:"host_id"` // root of the sandbox, as the machine sees it
	Size    int      `json:"size"`    // 0: its users are those of the machine
	Network string   `json:"network"` // the file of the sandbox's network namespace
	Binds   []struct {
		Source   string `json:"source"`
		Target   string `json:"target"`
		ReadOnly bool   `json:"read_only"`
	} `json:"binds"`
	Files []struct {
		Path string `json:"path"`
		Text string `json:"text"`
	} `json:"files"` // written into the root
	SetUserId      bool `json:"set_user_id"`     // set-user-id programs change the user
	KeepsTemporary bool `json:"keeps_temporary"` // gVisor would hide an empty /tmp
	Probe          bool `json:"probe"`           // mounts nothing
}

const (
	prSetSecurebits = 28
	noSetuidFixup   = 1 << 2 // SECBIT_NO_SETUID_FIXUP
)

// sysSetns is missing in package syscall for some architectures.
var sysSetns = map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]

// errUnsupported says that the kernel or a file system cannot do it.
var errUnsupported = errors.New("this is not possible here")

func mountRoot(r rootRequest) error {
	var users *os.File
	if r.Size > 0 {
		var err error
		if users, err = newUserNamespace(r.HostId, r.Size); err != nil {
			return fmt.Errorf("%w: a user namespace could not be created: %v", errUnsupported, err)
		}
		defer users.Close()
	}
	overlay, err := asOwner(r.HostId, func() (int, error) { return newOverlay(r, users) })
	if err != nil {
		return err
	}
	if r.Probe {
		return syscall.Close(overlay)
	}
	if err := attach(overlay, atWorkingDirectory, r.Target); err != nil {
		return err
	}
	if _, err := asOwner(r.HostId, func() (int, error) { return 0, fillRoot(r, users) }); err != nil {
		return errors.Join(err, syscall.Unmount(r.Target, syscall.MNT_DETACH))
	}
	return nil
}

// newOverlay returns an overlay that is mounted nowhere yet. Its layers are mounted only for this thread, which ends.
func newOverlay(r rootRequest, users *os.File) (int, error) {
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return -1, fmt.Errorf("unshare: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return -1, fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	// Short names in a folder that only this thread sees: the options of a mount have a limited length.
	if err := syscall.Mount("layers", r.Target, "tmpfs", 0, "mode=755"); err != nil {
		return -1, err
	}
	// That of this thread only: with another mount namespace, it has one of its own.
	if err := syscall.Chdir(r.Target); err != nil {
		return -1, err
	}
	var names []string
	for index, path := range append([]string{r.Changes}, r.Lower...) {
		name := strconv.Itoa(index)
		if err := syscall.Mkdir(name, 0o755); err != nil {
			return -1, err
		}
		mounted, err := translated(path, users, 0)
		if err != nil {
			return -1, err
		}
		if err := attach(mounted, atWorkingDirectory, name); err != nil {
			return -1, err
		}
		names = append(names, name)
	}
	options := [][2]string{{"lowerdir", strings.Join(names[1:], ":")}, {"upperdir", "0/upper"}, {"workdir", "0/work"}}
	for _, option := range r.Options {
		name, value, _ := strings.Cut(option, "=")
		options = append(options, [2]string{name, value})
	}
	attributes := uint64(attrNoDev)
	if !r.SetUserId {
		attributes |= attrNoSuid
	}
	return newMount("overlay", options, attributes)
}

// fillRoot mounts what a user namespace may not mount, or would see with the owners of the machine, and writes files. No program of the sandbox
// runs yet.
func fillRoot(r rootRequest, users *os.File) error {
	root, err := os.OpenRoot(r.Target)
	if err != nil {
		return err
	}
	defer root.Close()
	if r.Network != "" {
		sys, err := newSys(r.Network)
		if err != nil {
			return err
		}
		if err := attachBelow(root, "sys", sys); err != nil {
			return err
		}
	}
	for _, bind := range r.Binds {
		attributes := uint64(attrNoSuid | attrNoDev)
		if bind.ReadOnly {
			attributes |= attrReadOnly
		}
		mounted, err := translated(bind.Source, users, attributes)
		if err != nil {
			return err
		}
		if err := attachBelow(root, strings.TrimLeft(bind.Target, "/"), mounted); err != nil {
			return err
		}
	}
	return writeContent(root, r)
}

// writeContent writes the files that a sandbox has besides those of its layers.
func writeContent(root *os.Root, r rootRequest) error {
	for _, file := range r.Files {
		if err := writeBelow(root, strings.TrimLeft(file.Path, "/"), file.Text); err != nil {
			return err
		}
	}
	if r.KeepsTemporary {
		return keepTemporary(root)
	}
	return nil
}

// writeBelow replaces a file in the root. A link of the image is replaced too: in a sandbox, what it leads to often does not exist.
func writeBelow(root *os.Root, path, text string) error {
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := root.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// keepTemporary keeps gVisor from mounting a file system in memory at an empty /tmp, whose files would be missing in a snapshot of files.
func keepTemporary(root *os.Root) error {
	info, err := root.Lstat("tmp")
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := root.Mkdir("tmp", 0o700); err != nil {
			return err
		}
		if err := root.Chmod("tmp", 0o777|os.ModeSticky); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.IsDir():
		return nil
	}
	file, err := root.OpenFile("tmp/.keep", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// newUserNamespace returns a namespace that outlives the process for which it was created.
func newUserNamespace(hostId, size int) (*os.File, error) {
	program, err := exec.LookPath("cat") // ends with its input
	if err != nil {
		return nil, err
	}
	input, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	// The launcher reaps all its children, so nobody waits for this one.
	defer writer.Close()
	mapping := []syscall.SysProcIDMap{{ContainerID: 0, HostID: hostId, Size: size}}
	attributes := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: mapping, GidMappings: mapping, GidMappingsEnableSetgroups: true,
	}
	pid, err := syscall.ForkExec(program, []string{"cat"}, &syscall.ProcAttr{Files: []uintptr{input.Fd(), null.Fd(), null.Fd()}, Sys: attributes})
	if err != nil {
		return nil, err
	}
	return os.Open(processFile(pid, "ns/user"))
}

// asOwner runs a function on a thread that creates files as root of the sandbox: for the machine's root there is no owner. It keeps its
// capabilities.
func asOwner(hostId int, run func() (int, error)) (int, error) {
	return onThread(func() (int, error) {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSecurebits, noSetuidFixup, 0); errno != 0 {
			return -1, fmt.Errorf("prctl(PR_SET_SECUREBITS): %w", errno)
		}
		// They return the former user, and no error.
		syscall.RawSyscall(syscall.SYS_SETFSGID, uintptr(hostId), 0, 0)
		syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(hostId), 0, 0)
		return run()
	})
}

// newSys returns the /sys of a network namespace, and lets every user of it listen on all ports: the namespace belongs to the users of the
// machine, so no capability of the sandbox counts in it.
func newSys(network string) (int, error) {
	namespace, err := os.Open(network)
	if err != nil {
		return -1, err
	}
	defer namespace.Close()
	return onThread(func() (int, error) {
		if _, _, errno := syscall.RawSyscall(sysSetns, namespace.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
			return -1, fmt.Errorf("setns %s: %w", network, errno)
		}
		// The kernel shows the settings of the thread that opens the file.
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0); err != nil {
			return -1, err
		}
		return newMount("sysfs", nil, attrReadOnly|attrNoSuid|attrNoDev|attrNoExec)
	})
}

// attachBelow mounts at a path in the root, and closes the descriptor. A link of the image leads nowhere else: os.Root follows none out of it.
func attachBelow(root *os.Root, path string, mounted int) error {
	defer syscall.Close(mounted)
	if err := root.MkdirAll(path, 0o755); err != nil {
		return err
	}
	folder, err := root.OpenFile(path, syscall.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer folder.Close()
	return moveMount(mounted, folder.Fd(), "")
}

// onThread runs a function on a thread of its own, which ends with it.
func onThread(run func() (int, error)) (result int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		// Files get the modes that are given, whatever the umask of the server is. Other threads keep it.
		if err = syscall.Unshare(syscall.CLONE_FS); err != nil {
			return
		}
		syscall.Umask(0)
		result, err = run()
	}()
	<-done
	return result, err
}
