package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net"
	"sync"
	"time"
)

const (
	maxStreams         = 1024
	maxUnauthenticated = 32
	helloTimeout       = 10 * time.Second
	signedPrefix       = "aenv-init-1\n" // so that a signature for another purpose is not accepted here
)

type connection struct {
	server  *server
	socket  net.Conn
	context context.Context
	cancel  context.CancelFunc

	writing sync.Mutex
	buffer  []byte

	mu      sync.Mutex
	streams map[uint32]*stream
}

// accept serves connections until the listener is closed.
func (s *server) accept(listener net.Listener) {
	waiting := make(chan struct{}, maxUnauthenticated)
	for {
		socket, err := listener.Accept()
		if err != nil {
			if isClosed(err) {
				return
			}
			time.Sleep(50 * time.Millisecond) // out of file handles: a program of the sandbox may have used them up
			continue
		}
		select {
		case waiting <- struct{}{}:
			go func() {
				c := s.newConnection(socket)
				defer c.close()
				err := c.authenticate()
				<-waiting
				if err == nil {
					c.serve()
				}
			}()
		default: // programs of the sandbox can connect too, but not use up its memory
			socket.Close()
		}
	}
}

func (s *server) newConnection(socket net.Conn) *connection {
	c := &connection{server: s, socket: socket, streams: map[uint32]*stream{}}
	c.context, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *connection) close() {
	c.cancel()
	c.socket.Close()
	c.server.forget(c)
}

// authenticate sends a random challenge, and returns nil if the client signed it with the server's private key.
func (c *connection) authenticate() error {
	c.socket.SetDeadline(time.Now().Add(helloTimeout))
	challenge := make([]byte, 32)
	rand.Read(challenge)
	hello := newStream(c, 0)
	err := hello.sendJSON(kindAnswer, map[string]any{
		"protocol": protocolVersion, "init": version, "abilities": abilities(), "challenge": base64.StdEncoding.EncodeToString(challenge),
	})
	if err != nil {
		return err
	}
	first, err := readFrame(c.socket, maxHelloFrame)
	if err != nil {
		return err
	}
	var proof struct{ Signature []byte }
	if first.kind != kindRequest || first.stream != 0 || json.Unmarshal(first.payload, &proof) != nil ||
		!ed25519.Verify(c.server.key, append([]byte(signedPrefix+addressOf(c.socket)+"\n"), challenge...), proof.Signature) {
		err := failed("unauthenticated", "the challenge was not signed with the key that this sandbox was started with, for the address %s",
			addressOf(c.socket))
		hello.finish(nil, err)
		return err
	}
	c.socket.SetDeadline(time.Time{})
	c.server.remember(c)
	return hello.answer(map[string]any{"generation": c.server.generation.Load()})
}

// addressOf is what the client has connected to. It is signed, so that a program cannot pass a challenge of another sandbox's init on to a
// server, and use the answer there. The path of a unix socket differs inside and outside, and no other sandbox can reach it.
func addressOf(socket net.Conn) string {
	if address := socket.LocalAddr(); address.Network() == "tcp" {
		return address.String()
	}
	return "unix"
}

// serve handles frames until the connection is lost or the client violates the protocol.
func (c *connection) serve() {
	from := bufio.NewReaderSize(c.socket, maxData)
	for {
		f, err := readFrame(from, maxFrame)
		if err != nil {
			return
		}
		if f.kind == kindData {
			c.server.touch()
		}
		if err := c.accept(f); err != nil {
			violation, _ := json.Marshal(failureOf(err))
			c.send(frame{kind: kindReset, stream: 0, payload: violation})
			return
		}
	}
}

func (c *connection) accept(f frame) error {
	c.mu.Lock()
	known := c.streams[f.stream]
	if f.kind != kindRequest {
		c.mu.Unlock()
		if known == nil {
			return nil // the stream has just ended here
		}
		return known.accept(f)
	}
	defer c.mu.Unlock()
	if known != nil || f.stream == 0 {
		return failed("protocol", "stream %d is in use", f.stream)
	}
	opened := newStream(c, f.stream)
	if len(c.streams) >= maxStreams {
		opened.finish(nil, failed("too_many_streams", "%d requests are open on this connection; wait for one to end", maxStreams))
		return nil
	}
	c.streams[f.stream] = opened
	go func() {
		opened.finish(c.server.handle(opened, f.payload))
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.streams, opened.id)
	}()
	return nil
}

func (c *connection) send(f frame) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.buffer = appendFrame(c.buffer[:0], f)
	_, err := c.socket.Write(c.buffer)
	if err != nil {
		c.cancel()
	}
	return err
}
