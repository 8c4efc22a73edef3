package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The server holds what all connections share.
type server struct {
	key        ed25519.PublicKey
	processes  *processTable
	listeners  *listeners
	exit       chan int
	stopping   atomic.Bool
	generation atomic.Int64 // how often the sandbox was restored from a snapshot
	following  atomic.Int64 // clients that wait for the end of a process
	lastUse    atomic.Int64 // when a client last sent data or a request other than stats, in nanoseconds of the wall clock
	// Programs are killed when this process ends, however it ends: outside of sandboxes, where nothing else ends them.
	programsEndWithIt bool
	// Starts programs that end with this process: Linux kills them when the thread ends that has started them. Nil: any thread.
	starter *thread

	mu          sync.Mutex
	connections map[*connection]struct{}
}

func newServer(key ed25519.PublicKey) *server {
	s := &server{
		key: key, processes: newProcessTable(), listeners: &listeners{waiting: map[int]*arrival{}}, exit: make(chan int, 1),
		connections: map[*connection]struct{}{},
	}
	s.touch()
	return s
}

func (s *server) touch() { s.lastUse.Store(time.Now().UnixNano()) }

func (s *server) remember(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections[c] = struct{}{}
}

func (s *server) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
}

// A handler returns the answer of a request. If it has answered before, as requests with data do, it returns the summary at the end.
type handler func(*server, *stream, json.RawMessage) (any, error)

// Filled by init: a handler may refer to this table.
var handlers map[string]handler

func init() {
	handlers = map[string]handler{
		"spawn":          typed(spawnProcess),
		"main":           typed(spawnMain),
		"attach":         typed(attachProcess),
		"signal":         typed(signalProcess),
		"resize":         typed(resizeProcess),
		"list_processes": typed(listProcesses),
		"read":           typed(readFile),
		"write":          typed(writeFile),
		"list":           typed(listFiles),
		"stat":           typed(statFile),
		"mkdir":          typed(makeDirectory),
		"remove":         typed(removeFile),
		"rename":         typed(renameFile),
		"watch":          typed(watchFiles),
		"pack":           typed(packFiles),
		"unpack":         typed(unpackFiles),
		"unpack_cached":  typed(unpackCached),
		"export":         typed(exportFiles),
		"import":         typed(importFiles),
		"connect":        typed(connectPort),
		"listen":         typed(listenPort),
		"take":           typed(takeConnection),
		"stats":          typed(readStats),
		"restored":       typed(afterRestore),
		"shutdown":       typed(shutdownSandbox),
	}
}

func abilities() []string { return slices.Sorted(maps.Keys(handlers)) }

// typed parses the parameters strictly: an option that this version does not know must not be ignored silently.
func typed[T any](run func(*server, *stream, T) (any, error)) handler {
	return func(s *server, on *stream, text json.RawMessage) (any, error) {
		var parameters T
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&parameters); err != nil {
			return nil, failed("invalid_request", "the parameters are invalid: %v", err)
		}
		return run(s, on, parameters)
	}
}

func (s *server) handle(on *stream, text []byte) (any, error) {
	var request struct {
		Request    string
		Parameters json.RawMessage
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, failed("invalid_request", "the request is not JSON: %v", err)
	}
	run, known := handlers[request.Request]
	if !known {
		return nil, failed("unknown_request", "init %s has no request %q", version, request.Request)
	}
	if request.Request != "stats" {
		s.touch()
	}
	if request.Parameters == nil {
		request.Parameters = json.RawMessage("{}")
	}
	return run(s, on, request.Parameters)
}

type shutdownRequest struct {
	GraceMs *int64 `json:"grace_ms"`
}

func shutdownSandbox(s *server, on *stream, r shutdownRequest) (any, error) {
	on.finish(struct{}{}, nil) // before the connection breaks
	go s.shutdown(graceOf(r.GraceMs), 0)
	return nil, nil
}

// shutdown asks every process to end, kills those that have not after the grace, and ends the init.
func (s *server) shutdown(grace time.Duration, code int) {
	if !s.stopping.CompareAndSwap(false, true) {
		return
	}
	s.processes.endAll(grace)
	// Clients hear of the end of their processes before the connection breaks, unless they do not read.
	for limit := time.Now().Add(time.Second); s.following.Load() > 0 && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	s.exit <- code // the end of process 1 is the end of the sandbox
}

func graceOf(ms *int64) time.Duration {
	if ms == nil {
		return defaultGrace
	}
	return time.Duration(max(*ms, 0)) * time.Millisecond
}

func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) }
