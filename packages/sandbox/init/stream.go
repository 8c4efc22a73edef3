package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
)

// A stream is one request: its answer, and data in both directions. Each side may send only as much data as the other has allowed.
type stream struct {
	connection *connection
	id         uint32
	context    context.Context // ends when the client resets the stream or the connection is lost
	cancel     context.CancelCauseFunc
	answered   bool // these two are used by the request's handler only
	finished   bool

	mu       sync.Mutex
	changed  *sync.Cond
	credit   int // bytes that may be sent
	window   int // bytes that the client may send
	consumed int // bytes read since the window was last enlarged
	received []byte
	ended    bool
}

var errReset = errors.New("the client closed the stream")

func newStream(c *connection, id uint32) *stream {
	s := &stream{connection: c, id: id, credit: initialWindow, window: initialWindow}
	s.changed = sync.NewCond(&s.mu)
	s.context, s.cancel = context.WithCancelCause(c.context)
	context.AfterFunc(s.context, s.wake)
	return s
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// accept handles a frame from the client. An error is a violation of the protocol.
func (s *stream) accept(f frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	switch f.kind {
	case kindData:
		if len(f.payload) > s.window || s.ended {
			return failed("protocol", "stream %d sent more data than allowed", s.id)
		}
		s.window -= len(f.payload)
		s.received = append(s.received, f.payload...)
	case kindEnd:
		s.ended = true
	case kindWindow:
		if len(f.payload) != 4 {
			return failed("protocol", "a window frame has %d bytes, not 4", len(f.payload))
		}
		s.credit += int(binary.BigEndian.Uint32(f.payload))
	case kindReset:
		s.cancel(errReset)
	default:
		return failed("protocol", "unexpected frame of kind %d on stream %d", f.kind, s.id)
	}
	return nil
}

// Read returns data of the client, and io.EOF after its end.
func (s *stream) Read(to []byte) (int, error) {
	s.mu.Lock()
	for len(s.received) == 0 && !s.ended && s.context.Err() == nil {
		s.changed.Wait()
	}
	if s.context.Err() != nil {
		s.mu.Unlock()
		return 0, context.Cause(s.context)
	}
	n := copy(to, s.received)
	s.received = s.received[n:]
	if n == 0 {
		s.mu.Unlock()
		return 0, io.EOF
	}
	s.consumed += n
	enlarge := 0
	// In large steps, so that few frames are sent.
	if s.consumed >= initialWindow/4 {
		enlarge, s.consumed = s.consumed, 0
		s.window += enlarge
	}
	s.mu.Unlock()
	if enlarge > 0 {
		return n, s.send(kindWindow, binary.BigEndian.AppendUint32(nil, uint32(enlarge)))
	}
	return n, nil
}

// Write sends data, and waits while the client allows no more.
func (s *stream) Write(data []byte) (int, error) { return s.writeTagged(nil, data) }

// writeTagged sends data in frames that each begin with the tag. It returns how much of the data was sent.
func (s *stream) writeTagged(tag, data []byte) (int, error) {
	sent := 0
	for sent < len(data) {
		allowed, err := s.reserve(min(len(tag)+len(data)-sent, maxData), len(tag)+1)
		if err != nil {
			return sent, err
		}
		size := allowed - len(tag)
		if err := s.send(kindData, slices.Concat(tag, data[sent:sent+size])); err != nil {
			return sent, err
		}
		sent += size
	}
	return sent, nil
}

// reserve waits until at least some bytes may be sent, and takes as many as it can.
func (s *stream) reserve(wanted, atLeast int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.credit < atLeast && s.context.Err() == nil {
		s.changed.Wait()
	}
	if s.context.Err() != nil {
		return 0, context.Cause(s.context)
	}
	granted := min(wanted, s.credit)
	s.credit -= granted
	return granted, nil
}

// answer sends the result of the request; data may follow.
func (s *stream) answer(result any) error {
	s.answered = true
	return s.sendJSON(kindAnswer, map[string]any{"result": result})
}

// finish ends the stream with what the request's handler returned. Only the first call counts.
func (s *stream) finish(result any, err error) {
	if s.finished {
		return
	}
	s.finished = true
	switch {
	case s.answered && err == nil:
		s.sendJSON(kindEnd, result)
	case s.answered:
		s.sendJSON(kindReset, failureOf(err))
	case err == nil:
		s.answer(result)
	default:
		s.sendJSON(kindAnswer, map[string]any{"error": failureOf(err)})
	}
	s.cancel(errReset)
}

func (s *stream) sendJSON(kind byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.send(kind, text)
}

func (s *stream) send(kind byte, payload []byte) error {
	return s.connection.send(frame{kind: kind, stream: s.id, payload: payload})
}
