package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"syscall"
)

// Requests of a launcher: this program on the machine and not in a sandbox, where it starts sandboxes and mounts their roots.

// Filled by init, as `handlers` is.
var launcherHandlers map[string]handler

func init() {
	launcherHandlers = map[string]handler{
		"launch":       typed(launchProgram),
		"mount_root":   typed(handleMountRoot),
		"restack_root": typed(handleRestack),
	}
}

// becomeLauncher adds the requests. An init in a sandbox does not know them.
func becomeLauncher() { maps.Copy(handlers, launcherHandlers) }

type launchRequest struct {
	spawnRequest
	Root *rootRequest `json:"root"` // mounted first
	// The program is on a read-only mount that nobody else sees: crun starts itself again unless it is, which takes a tenth of the start of a sandbox.
	OwnMounts bool   `json:"own_mounts"`
	Hidden    string `json:"hidden"` // a folder that is empty for the program; only with mounts of its own
	// Descriptors for which the program and its children have room from the beginning. gVisor's kernel uses high numbers. When a process with
	// several threads uses one for the first time, Linux lets it wait until all processors have noticed that, for 10 to 25 milliseconds.
	Descriptors int `json:"descriptors"`
}

func launchProgram(s *server, on *stream, r launchRequest) (any, error) {
	if r.Root != nil {
		if err := mountRoot(*r.Root); err != nil {
			return nil, mountFailure(err)
		}
	}
	r.descriptors = r.Descriptors
	if !r.OwnMounts || len(r.Argv) == 0 {
		return spawnProcess(s, on, r.spawnRequest)
	}
	path := r.Env["PATH"]
	if path == "" {
		path = defaultPath
	}
	program, err := findProgram(r.Argv[0], "/", path)
	if err != nil {
		return nil, err
	}
	own, err := newThread(func() error { return takeOwnMounts(program, r.Hidden) })
	if err != nil {
		return nil, mountFailure(err)
	}
	// Not before the end of the program, which is killed when the thread ends that has started it.
	defer own.end()
	r.thread = own
	return spawnProcess(s, on, r.spawnRequest)
}

func takeOwnMounts(program, hidden string) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	if hidden != "" {
		if err := syscall.Mount("none", hidden, "tmpfs", 0, "size=64k"); err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", hidden, err)
		}
	}
	if err := syscall.Mount(program, program, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s cannot be mounted: %w", program, err)
	}
	if err := syscall.Mount("", program, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("%s cannot be made read-only: %w", program, err)
	}
	return nil
}

// withRoom adds descriptors up to this number, of which only the last one is open.
func withRoom(files []uintptr, descriptors int, last *os.File) []uintptr {
	const closed = ^uintptr(0)
	for len(files) < descriptors-1 {
		files = append(files, closed)
	}
	return append(files, last.Fd())
}

func handleMountRoot(_ *server, _ *stream, r rootRequest) (any, error) {
	return struct{}{}, mountFailure(mountRoot(r))
}

func handleRestack(_ *server, _ *stream, r restackRequest) (any, error) {
	return struct{}{}, mountFailure(restack(r))
}

// mountFailure has a code for what the server does something about.
func mountFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errHalfway):
		return failed("halfway", "%v", err)
	case errors.Is(err, errUnsupported):
		return failed("unsupported", "%v", err)
	}
	return failed("not_mounted", "%v", err)
}

// A thread does work that needs what only it has, such as a mount namespace. Programs that it starts inherit that.
type thread struct{ work chan func() }

func newThread(prepare func() error) (*thread, error) {
	t := &thread{work: make(chan func())}
	prepared := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		err := prepare()
		prepared <- err
		if err == nil {
			for work := range t.work {
				work()
			}
		}
	}()
	return t, <-prepared
}

func (t *thread) run(create func() (int, error)) (pid int, err error) {
	done := make(chan struct{})
	t.work <- func() {
		defer close(done)
		pid, err = create()
	}
	<-done
	return pid, err
}

func (t *thread) end() { close(t.work) }
