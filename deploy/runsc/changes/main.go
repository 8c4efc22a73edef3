// Changes a copy of gVisor's sources: `go run deploy/runsc/changes/main.go GVISOR`. Sandboxes start with less processor time, and none is
// killed because it is frozen. New files are in `files`, at their places. The tables have the lines that call them, and those that are wrong or
// only cost time.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A change is made once in its file. Anything else means that this version of gVisor is another one.
type change struct{ file, from, to string }

var fasterStarts = []change{
	// The trace points, of which there are hundreds, are registered when a session with some is created.
	{"runsc/boot/loader.go", "\tseccheck.Initialize()\n", ""},
	{"pkg/sentry/seccheck/config.go", "\tif desc, ok := Points[name]", "\tInitialize()\n\tif desc, ok := Points[name]"},

	{"runsc/cmd/sandboxsetup/process.go", "func ExecProcUmounter() (*exec.Cmd, *os.File) {\n", "func ExecProcUmounter() (*exec.Cmd, *os.File) {\n\tif w := prewarmedUmounter(); w != nil {\n\t\treturn nil, w\n\t}\n"},

	{"runsc/cmd/sentry/sentrycmd/boot.go", "\tdebug.SetTraceback(conf.Traceback)\n", "\tdebug.SetTraceback(conf.Traceback)\n\tboot.BeginStart()\n"},
	{"runsc/cmd/sentry/sentrycmd/boot.go", "\tstartSyncFile.Close()\n", "\tstartSyncFile.Close()\n\tboot.AwaitStart()\n"},
	{"runsc/boot/loader.go", "\tl.startupTimer.Reached(\"kernel started\")\n", "\tl.startupTimer.Reached(\"kernel started\")\n\tendStart()\n"},

	{"runsc/boot/restore.go", "\tr.timer.Reached(\"Starting sandbox\")\n", "\tr.timer.Reached(\"Starting sandbox\")\n\tbeginRestored()\n"},

	{"pkg/aio/aio.go", "gomaxprocs.Add(workers)", "gomaxprocs.Add(min(workers, mostProcessors))"},
	{"pkg/aio/aio.go", "gomaxprocs.Add(-q.numWorkers)", "gomaxprocs.Add(-min(q.numWorkers, mostProcessors))"},
}

// The kernel has a process of the machine change the memory of a program, the stub, and waits with SECCOMP_IOCTL_NOTIF_RECV until the stub is done and
// waits for the next order. Freezing the sandbox interrupts that wait of the stub: its notification is withdrawn, and sent again when it goes on. Between
// the two, the call fails with ENOENT. The kernel takes that for the end of the stub, and ends the program, and with process 1 the whole sandbox.
// ENOENT is no reason to end it, as it is none where the kernel answers a notification.
var survivesFreezing = []change{
	{"pkg/sentry/platform/systrap/syscall_thread_unsafe.go", "if errno == unix.EINTR && t.subproc.alive() {", "if (errno == unix.EINTR || errno == unix.ENOENT) && t.subproc.alive() {"},
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: changes GVISOR"))
	}
	gvisor := os.Args[1]
	_, self, _, _ := runtime.Caller(0)
	fail(os.CopyFS(gvisor, os.DirFS(filepath.Join(filepath.Dir(self), "files"))))
	for _, change := range slices.Concat(fasterStarts, survivesFreezing) {
		fail(change.apply(gvisor))
	}
}

func (c change) apply(gvisor string) error {
	path := filepath.Join(gvisor, c.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if found := strings.Count(string(text), c.from); found != 1 {
		return fmt.Errorf("%s has %q %d times, not once", c.file, c.from, found)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), c.from, c.to, 1)), 0o644)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "changes:", err)
		os.Exit(1)
	}
}
