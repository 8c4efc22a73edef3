package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	maxListeners = 32
	maxArrivals  = 128 // connections of one listener at the same time
	takeTimeout  = 30 * time.Second
)

// Listeners hand connections of programs in the sandbox to clients: the other direction of a connection to a port.
type listeners struct {
	mu      sync.Mutex
	open    int
	next    int
	waiting map[int]*arrival // not yet taken by a client
}

// An arrival is a connection that a program of the sandbox has opened.
type arrival struct {
	socket *net.TCPConn
	close  func() // idempotent
}

type listenRequest struct {
	Port int `json:"port"` // 0 for any that is free
}

// listenPort listens on the loopback interface until the client resets the stream or is gone. Each connection is announced as a line with
// its number, for which the client then sends "take". With the listener, all of its connections end.
func listenPort(s *server, on *stream, r listenRequest) (any, error) {
	if r.Port < 0 || r.Port > 65535 {
		return nil, failed("invalid_request", "%d is not a port", r.Port)
	}
	if !s.listeners.begin() {
		return nil, failed("too_many_streams", "%d ports are listened on for clients; close one", maxListeners)
	}
	defer s.listeners.end()
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)))
	if err != nil {
		return nil, failed("port_in_use", "cannot listen on port %d of the sandbox: %v", r.Port, err)
	}
	stop := context.AfterFunc(on.context, func() { listener.Close() })
	defer stop()
	defer listener.Close()
	if err := on.answer(map[string]int{"port": listener.Addr().(*net.TCPAddr).Port}); err != nil {
		return nil, err
	}
	ended, end := context.WithCancel(on.context)
	defer end()
	places := make(chan struct{}, maxArrivals)
	for {
		socket, err := listener.Accept()
		if err != nil {
			if on.context.Err() != nil || isClosed(err) {
				return struct{}{}, nil
			}
			time.Sleep(50 * time.Millisecond) // out of file handles: a program of the sandbox may have used them up
			continue
		}
		select {
		case places <- struct{}{}:
		default: // a program of the sandbox must not use up the client's memory
			socket.Close()
			continue
		}
		number := s.listeners.add(ended, socket.(*net.TCPConn), func() { <-places })
		if _, err := fmt.Fprintf(on, "%d\n", number); err != nil {
			return nil, err
		}
	}
}

type takeRequest struct {
	Connection int `json:"connection"`
}

// takeConnection joins the stream with a connection that was announced.
func takeConnection(s *server, on *stream, r takeRequest) (any, error) {
	taken := s.listeners.take(r.Connection)
	if taken == nil {
		return nil, failed("no_connection", "connection %d was closed, or taken before", r.Connection)
	}
	defer taken.close()
	return join(on, taken.socket)
}

func (l *listeners) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= maxListeners {
		return false
	}
	l.open++
	return true
}

func (l *listeners) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

// add keeps a connection until it is taken, for some time, and not longer than its listener.
func (l *listeners) add(listener context.Context, socket *net.TCPConn, onClose func()) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	number := l.next
	var once sync.Once
	var stop func() bool
	end := func() {
		once.Do(func() {
			stop()
			l.take(number)
			socket.Close()
			onClose()
		})
	}
	stop = context.AfterFunc(listener, end)
	l.waiting[number] = &arrival{socket: socket, close: end}
	time.AfterFunc(takeTimeout, func() {
		if late := l.take(number); late != nil {
			late.close()
		}
	})
	return number
}

// take returns a waiting connection once, and nil afterwards.
func (l *listeners) take(number int) *arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.waiting[number]
	delete(l.waiting, number)
	return found
}
