package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// A process was started by a request. It is the leader of its own session and group.
type process struct {
	id        int
	pid       int
	argv      []string
	startedAt time.Time
	isMain    bool
	output    *output
	stdin     io.WriteCloser // nil if it has none
	terminal  *terminal      // nil if it has none

	mu       sync.Mutex // guards what follows
	timedOut bool
	timer    *time.Timer
	memory   memoryCounts // when the process started

	ended    chan struct{} // closed when it was reaped; status and run time are set before
	done     chan struct{} // closed when its output is complete, too
	reported chan struct{} // closed when a client was told the end
	status   syscall.WaitStatus
	runTime  time.Duration
}

type ending struct {
	ExitCode    *int   `json:"exit_code"`
	Signal      string `json:"signal,omitempty"`
	TimedOut    bool   `json:"timed_out"`
	DurationMs  int64  `json:"duration_ms"`
	OutOfMemory bool   `json:"out_of_memory"`
	// Why processes of the sandbox were ended by something outside of it while this one ran.
	Interruption string `json:"interruption,omitempty"`
	Dropped      int64  `json:"dropped_bytes"`
}

// endingOf describes how a process ended; valid when it is done.
func (s *server) endingOf(p *process) ending {
	memory := readMemoryCountsSince(p.memory)
	p.mu.Lock()
	defer p.mu.Unlock()
	end := ending{TimedOut: p.timedOut, DurationMs: p.runTime.Milliseconds(), Dropped: p.output.droppedBytes()}
	if p.status.Signaled() {
		end.Signal = signalName(p.status.Signal())
		end.OutOfMemory = p.status.Signal() == syscall.SIGKILL && memory.kills > p.memory.kills
	} else {
		code := p.status.ExitStatus()
		end.ExitCode = &code
	}
	switch {
	case s.stopping.Load():
		end.Interruption = "the sandbox was shut down"
	case memory.endedFromOutside(p.memory, hasReachedLimitV1):
		end.Interruption = "the kernel ended a process of the sandbox for want of memory, and the sandbox's own limit is not known to be the cause"
	}
	return end
}

// signal sends a signal to the process, or to its whole group. It fails once the process was reaped, because its number may be reused.
func (t *processTable) signal(p *process, signal syscall.Signal, group bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byPid[p.pid] != p {
		return failed("not_running", "process %d (pid %d) has ended", p.id, p.pid)
	}
	target := p.pid
	if group {
		target = -p.pid
	}
	return syscall.Kill(target, signal)
}

// setDeadline ends the group after some time: first with SIGTERM, after the grace with SIGKILL.
func (t *processTable) setDeadline(p *process, after, grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		select {
		case <-p.ended:
			return
		default:
		}
		p.timedOut = true
		t.signal(p, syscall.SIGTERM, true)
		p.timer = time.AfterFunc(grace, func() { t.signal(p, syscall.SIGKILL, true) })
	})
}

// collect copies one output of the process until it ends. What was written before the end is part of the output. What a process in
// the background writes later is read and dropped: it would die of SIGPIPE if nobody read.
func (p *process) collect(channel byte, from *os.File) {
	woken := make(chan struct{})
	go func() {
		<-p.ended
		from.SetReadDeadline(time.Unix(1, 0))
		close(woken)
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.output.put(channel, buffer[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			from.Close()
			return
		}
	}
	<-woken
	from.SetReadDeadline(time.Time{})
	for {
		n, err := readAvailable(from, buffer)
		if n > 0 {
			p.output.put(channel, buffer[:n])
			continue
		}
		if err == syscall.EAGAIN {
			go func() {
				io.Copy(io.Discard, from)
				from.Close()
			}()
			return
		}
		from.Close()
		return
	}
}

// readAvailable does not wait: it returns EAGAIN if there is nothing to read.
func readAvailable(from *os.File, to []byte) (n int, err error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return 0, err
	}
	if failure := raw.Read(func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), to)
			if err != syscall.EINTR {
				return true
			}
		}
	}); failure != nil {
		return 0, failure
	}
	return n, err
}
