package main

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// Processes that ended while no client was attached are kept for one that attaches later, up to this number.
const maxEnded = 256

type processTable struct {
	mu    sync.Mutex
	next  int
	byId  map[int]*process
	byPid map[int]*process // not reaped yet
	ended []*process       // not reported to a client yet, oldest first
}

func newProcessTable() *processTable {
	return &processTable{next: 1, byId: map[int]*process{}, byPid: map[int]*process{}}
}

// start runs a function that creates a process. The lock is held meanwhile, so that the process is not reaped before it is known.
func (t *processTable) start(p *process, create func() (int, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	pid, err := create()
	if err != nil {
		return err
	}
	p.pid, p.id = pid, t.next
	t.next++
	t.byId[p.id], t.byPid[pid] = p, p
	return nil
}

func (t *processTable) find(id int) (*process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byId[id]
	if p == nil {
		return nil, failed("no_process", "there is no process %d, or its end was reported already", id)
	}
	return p, nil
}

func (t *processTable) list() []*process {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*process, 0, len(t.byId))
	for id := 1; id < t.next && len(all) < len(t.byId); id++ {
		if p := t.byId[id]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// forget removes a process whose end is reported, and says whether it was there.
func (t *processTable) forget(p *process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byId[p.id] != p {
		return false
	}
	delete(t.byId, p.id)
	return true
}

// reap collects every child that has ended: those started here, and orphans of the sandbox.
func (t *processTable) reap() {
	for {
		var status syscall.WaitStatus
		t.mu.Lock()
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			t.mu.Unlock()
			continue
		}
		p := t.byPid[pid]
		delete(t.byPid, pid)
		if p != nil {
			t.keepEnded(p)
		}
		t.mu.Unlock()
		if err != nil || pid == 0 {
			return
		}
		if p != nil {
			p.reaped(status)
		}
	}
}

func (t *processTable) keepEnded(p *process) {
	kept := t.ended[:0]
	for _, old := range append(t.ended, p) {
		if t.byId[old.id] == old {
			kept = append(kept, old)
		}
	}
	for len(kept) > maxEnded {
		delete(t.byId, kept[0].id)
		kept = kept[1:]
	}
	t.ended = kept
}

func (p *process) reaped(status syscall.WaitStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.timedOut {
		// The leader obeyed the deadline; others of its group may not have.
		syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	p.status, p.runTime = status, time.Since(p.startedAt)
	close(p.ended)
}

// endAll sends SIGTERM, and SIGKILL to what is left after the grace.
func (t *processTable) endAll(grace time.Duration) {
	t.signalAll(syscall.SIGTERM)
	for deadline := time.Now().Add(grace); time.Now().Before(deadline) && t.hasChildren(); {
		time.Sleep(5 * time.Millisecond)
	}
	t.signalAll(syscall.SIGKILL)
}

// killAll also waits until the programs have ended. Their children that have sessions of their own are not affected.
func (t *processTable) killAll(limit time.Duration) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		t.signalAll(syscall.SIGKILL)
		t.reap()
		t.mu.Lock()
		running := len(t.byPid)
		t.mu.Unlock()
		if running == 0 {
			return
		}
	}
}

func (t *processTable) signalAll(signal syscall.Signal) {
	if os.Getpid() == 1 {
		syscall.Kill(-1, signal) // all of the sandbox but this process
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid := range t.byPid {
		syscall.Kill(-pid, signal)
	}
}

func (t *processTable) hasChildren() bool {
	t.reap()
	var info [128]byte // siginfo_t
	return waitid(&info) != syscall.ECHILD
}
