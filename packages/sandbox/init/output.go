package main

import (
	"context"
	"sync"
)

const (
	channelStdout byte = 1
	channelStderr byte = 2
)

type chunk struct {
	channel byte
	data    []byte
}

// An output holds what a process has written and no client has taken. While a client is attached, a full output makes the process
// wait. Otherwise the process goes on, and the oldest bytes are dropped.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	chunks  []chunk
	size    int
	limit   int
	dropped int64
	reader  *stream
	closed  bool
}

func newOutput(limit int) *output {
	o := &output{limit: limit}
	o.changed = sync.NewCond(&o.mu)
	return o
}

func (o *output) put(channel byte, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.reader != nil && o.size >= o.limit {
		o.changed.Wait()
	}
	o.chunks = append(o.chunks, chunk{channel, append([]byte(nil), data...)})
	o.size += len(data)
	o.dropOldest()
	o.changed.Broadcast()
}

func (o *output) dropOldest() {
	for o.reader == nil && o.size > o.limit {
		first := &o.chunks[0]
		cut := min(len(first.data), o.size-o.limit)
		first.data = first.data[cut:]
		o.size -= cut
		o.dropped += int64(cut)
		if len(first.data) == 0 {
			o.chunks = o.chunks[1:]
		}
	}
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}

// claim makes a client the one that gets the output, instead of any other.
func (o *output) claim(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reader = s
	o.changed.Broadcast()
}

func (o *output) release(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader == s {
		o.reader = nil
		o.dropOldest()
		o.changed.Broadcast()
	}
}

// sendTo sends the output to the client that has claimed it until the process has ended (true), or the client is gone or replaced by
// another (false).
func (o *output) sendTo(s *stream) bool {
	defer context.AfterFunc(s.context, o.wake)()
	for {
		next, ok := o.take(s)
		if !ok {
			break
		}
		if sent, err := s.writeTagged([]byte{next.channel}, next.data); err != nil {
			o.putBack(chunk{next.channel, next.data[sent:]})
			break
		}
	}
	o.mu.Lock()
	isDone := o.reader == s && o.closed && len(o.chunks) == 0
	o.mu.Unlock()
	o.release(s)
	return isDone
}

func (o *output) take(s *stream) (chunk, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.chunks) == 0 && !o.closed && o.reader == s && s.context.Err() == nil {
		o.changed.Wait()
	}
	if len(o.chunks) == 0 || o.reader != s || s.context.Err() != nil {
		return chunk{}, false
	}
	next := o.chunks[0]
	o.chunks = o.chunks[1:]
	o.size -= len(next.data)
	o.changed.Broadcast()
	return next, true
}

// putBack keeps for the next client what was not sent to this one.
func (o *output) putBack(c chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.chunks = append([]chunk{c}, o.chunks...)
	o.size += len(c.data)
}

func (o *output) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
}

func (o *output) droppedBytes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}
