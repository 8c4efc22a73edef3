package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOutputAndExitCodeOfACommand(t *testing.T) {
	r := connectTest(t).sh("echo out; exit 7")
	if string(r.data) != "\x01out\n" || r.end["exit_code"] != 7.0 || r.end["timed_out"] != false {
		t.Fatalf("%+v", r)
	}
}

func TestAFullPipeOfOutputIsNotLostAtTheEnd(t *testing.T) {
	r := connectTest(t).sh("head -c 3000000 /dev/zero")
	if got := bytes.Count(r.data, []byte{0}); got != 3000000 {
		t.Fatalf("%d bytes", got)
	}
}

func TestEveryFrameOfOutputSaysWhichOutputItIs(t *testing.T) {
	c := connectTest(t)
	id := c.open("spawn", any_{"argv": []string{"/bin/sh", "-c", "head -c 600000 /dev/zero"}})
	c.until(id, func(_ *reply, f frame) bool {
		if f.kind == kindData && f.payload[0] != channelStdout {
			t.Fatalf("a frame of %d bytes begins with %d", len(f.payload), f.payload[0])
		}
		return f.kind == kindEnd
	})
}

func TestOneOutputKeepsTheOrderOfLines(t *testing.T) {
	script := "i=0; while [ $i -lt 300 ]; do echo $i; echo $((i + 1)) >&2; i=$((i + 2)); done"
	r := connectTest(t).run("main", any_{"argv": []string{"/bin/sh", "-c", script}, "keep": true, "one_output": true})
	var expected strings.Builder
	for i := range 300 {
		fmt.Fprintln(&expected, i)
	}
	if got := strings.ReplaceAll(string(r.data), string(channelStdout), ""); got != expected.String() {
		t.Fatalf("%q", got)
	}
}

func TestAProcessInTheBackgroundDoesNotDelayTheEnd(t *testing.T) {
	c := connectTest(t)
	r := c.sh("sleep 60 & echo $!")
	pid, err := strconv.Atoi(strings.TrimSpace(string(r.data[1:])))
	if err != nil || r.end["exit_code"] != 0.0 {
		t.Fatalf("%+v", r)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("the process in the background has ended: %v", err)
	}
}

func TestADeadlineEndsTheWholeGroupAndKeepsTheOutput(t *testing.T) {
	c := connectTest(t)
	r := c.run("spawn", any_{
		"argv":        []string{"/bin/sh", "-c", "trap '' TERM; (trap '' TERM; while :; do sleep 60; done) & echo $!; while :; do wait; done"},
		"deadline_ms": 300, "kill_grace_ms": 50,
	})
	if r.end["timed_out"] != true || r.end["signal"] != "SIGKILL" {
		t.Fatalf("%+v", r)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(r.data[1:])))
	eventually(t, "the child of the shell is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

func TestASignalReachesTheGroup(t *testing.T) {
	c := connectTest(t)
	id := c.open("spawn", any_{"argv": []string{"/bin/sh", "-c", "sleep 60 & sleep 60 & echo ready; wait"}})
	started := c.until(id, func(r *reply, f frame) bool { return f.kind == kindData })
	// The connection is not needed for the end; a second one attaches.
	other := connectTest(t)
	attached := other.open("attach", any_{"process": started.Result["process"]})
	other.until(attached, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
	c.call("signal", any_{"process": started.Result["process"], "signal": "SIGTERM", "group": true})
	r := other.finish(attached)
	if r.end["signal"] != "SIGTERM" {
		t.Fatalf("%+v", r)
	}
	wantCode(t, c.call("signal", any_{"process": started.Result["process"], "signal": "SIGTERM"}), "no_process")
}

func TestOrphansAreReaped(t *testing.T) {
	r := connectTest(t).sh("(sh -c 'exit 0' & echo $!) ; exit 0")
	pid := strings.TrimSpace(string(r.data[1:]))
	eventually(t, "no zombie is left", func() bool {
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	})
}

func TestATerminalHasASizeAndSeesItsChange(t *testing.T) {
	c := connectTest(t)
	script := "stty size; trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done"
	id := c.open("spawn", any_{"argv": []string{"/bin/sh", "-c", script}, "pty": any_{"rows": 10, "cols": 40}, "deadline_ms": 10000})
	started := c.until(id, func(r *reply, f frame) bool { return bytes.Contains(r.data, []byte("ready")) })
	c.open("resize", any_{"process": started.Result["process"], "rows": 20, "cols": 90})
	r := c.finish(id)
	if !bytes.Contains(started.data, []byte("10 40")) || !bytes.Contains(r.data, []byte("20 90")) {
		t.Fatalf("%q %q", started.data, r.data)
	}
}

func TestATerminalGivesAllOutputBeforeTheEnd(t *testing.T) {
	c := connectTest(t)
	for i := range 20 {
		r := c.run("spawn", any_{"argv": []string{"/bin/sh", "-c", fmt.Sprintf("echo last%d", i)}, "pty": any_{"rows": 10, "cols": 40}})
		if !bytes.Contains(r.data, fmt.Appendf(nil, "last%d", i)) {
			t.Fatalf("%d: %q", i, r.data)
		}
	}
}

func TestOutputWithoutAReaderIsKeptUpToTheLimit(t *testing.T) {
	c := connectTest(t)
	mark := filepath.Join(t.TempDir(), "go")
	script := fmt.Sprintf("while [ ! -e %s ]; do sleep 0.01; done; seq 1 1000", mark)
	id := c.open("spawn", any_{"argv": []string{"/bin/sh", "-c", script}, "keep_output_bytes": 100})
	started := c.until(id, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
	process := int(started.Result["process"].(float64))
	c.socket.Close()
	p, err := testServer.processes.find(process)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client is gone", func() bool {
		p.output.mu.Lock()
		defer p.output.mu.Unlock()
		return p.output.reader == nil
	})
	writeTest(t, mark, "")
	<-p.done
	r := connectTest(t).run("attach", any_{"process": process})
	if !bytes.HasSuffix(r.data, []byte("999\n1000\n")) || r.end["dropped_bytes"] != float64(3893-100) {
		t.Fatalf("%q %v", r.data, r.end)
	}
}

func TestWhatCannotBeStartedIsAnErrorWithItsReason(t *testing.T) {
	c := connectTest(t)
	wantCode(t, c.call("spawn", any_{"argv": []string{"no-such-program"}}), "no_program")
	wantCode(t, c.call("spawn", any_{"argv": []string{}}), "invalid_request")
	wantCode(t, c.call("spawn", any_{"argv": []string{"sh"}, "cwd": "/no/such"}), "no_cwd")
	wantCode(t, c.call("spawn", any_{"argv": []string{"sh"}, "user": "nobody-here"}), "no_user")
	wantCode(t, c.call("spawn", any_{"argv": []string{"/etc/hostname"}}), "not_started")
}

func TestACommandRunsAsItsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start processes of other users")
	}
	r := connectTest(t).run("spawn", any_{"argv": []string{"/usr/bin/id"}, "user": "1234:4321"})
	if !bytes.Contains(r.data, []byte("uid=1234")) || !bytes.Contains(r.data, []byte("gid=4321")) {
		t.Fatalf("%q", r.data)
	}
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
