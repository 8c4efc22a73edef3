// Changes a copy of gVisor's sources: `go run deploy/runsc/changes/main.go GVISOR`. Sandboxes start with less processor time, and are not killed
// because they wait for a processor. New files are in `files`, at their places. The tables have the lines that call them, and those that are wrong or
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

	{"pkg/cpuid/native_amd64.go", "Function: &Native{},\n\t}.Fixed()", "Function: memo{known: map[In]Out{}},\n\t}.Fixed()"},

	{"runsc/cmd/sandboxsetup/caps_unsafe.go", "if r.bounding&(uint64(1)<<uint(c)) != 0 {", "if r.bounding&(uint64(1)<<uint(c)) != 0 || isDropped(c) {"},
	{"runsc/cmd/sandboxsetup/process.go", "func ExecProcUmounter() (*exec.Cmd, *os.File) {\n", "func ExecProcUmounter() (*exec.Cmd, *os.File) {\n\tif w := prewarmedUmounter(); w != nil {\n\t\treturn nil, w\n\t}\n"},

	{"runsc/cmd/sentry/sentrycmd/boot.go", "\tdebug.SetTraceback(conf.Traceback)\n", "\tdebug.SetTraceback(conf.Traceback)\n\tboot.BeginStart()\n"},
	{"runsc/cmd/sentry/sentrycmd/boot.go", "\tstartSyncFile.Close()\n", "\tstartSyncFile.Close()\n\tboot.AwaitStart()\n"},
	{"runsc/boot/loader.go", "\tl.startupTimer.Reached(\"kernel started\")\n", "\tl.startupTimer.Reached(\"kernel started\")\n\tendStart()\n"},

	{"pkg/aio/aio.go", "gomaxprocs.Add(workers)", "gomaxprocs.Add(min(workers, mostProcessors))"},
	{"pkg/aio/aio.go", "gomaxprocs.Add(-q.numWorkers)", "gomaxprocs.Add(-min(q.numWorkers, mostProcessors))"},

	// How long each type of object took to load, which is only for the debug log.
	{"pkg/state/stats.go", "now := gohacks.Nanotime()", "now := s.last"},
	{"pkg/state/stats.go", "func (s *Stats) String() string {\n", "func (s *Stats) String() string {\n\tif s.names != nil {\n\t\treturn \"not measured\"\n\t}\n"},
}

// The kernel runs programs in processes of the machine, the stubs, and interrupts a stub that has not answered for some time. It kills the program, and
// with process 1 the whole sandbox, in two cases that are no failure:
//
//   - The stub is at a place between two programs, where it has none for some instructions. On a busy machine, or if the sandbox is frozen at that
//     moment, it stays there for longer. That is to be awaited.
//   - The clock says that the stub has not answered for half a minute. It goes on while the sandbox is frozen. What counts is the time that the kernel
//     itself has waited.
const sharedContext = "pkg/sentry/platform/systrap/shared_context.go"

var waitsForProcessors = []change{
	{sharedContext, "\t\tif _, err := sc.interruptStub(); err != nil {\n", "\t\tif _, err := sc.interruptStub(); err == errNoStubThread {\n\t\t\tcontinue\n\t\t} else if err != nil {\n"},
	{sharedContext, "\tdeadline := time.Now().Add(stuckTimeout)\n", "\twaited, limit := time.Duration(0), stuckTimeout\n"},
	{sharedContext, "\t\tif interruptsSent > 0 && time.Now().After(deadline) {\n", "\t\twaited += time.Duration(timeout.Nano())\n\t\tif interruptsSent > 0 && waited > limit {\n"},
	{sharedContext, "\t\t\tif checkupDeadline := time.Now().Add(checkupTimeout); checkupDeadline.After(deadline) {\n\t\t\t\tdeadline = checkupDeadline\n\t\t\t}\n", "\t\t\tlimit = max(limit, waited+checkupTimeout)\n"},
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: changes GVISOR"))
	}
	gvisor := os.Args[1]
	_, self, _, _ := runtime.Caller(0)
	fail(os.CopyFS(gvisor, os.DirFS(filepath.Join(filepath.Dir(self), "files"))))
	for _, change := range slices.Concat(fasterStarts, waitsForProcessors) {
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
