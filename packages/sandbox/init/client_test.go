package main

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A testClient speaks the protocol with an init that runs in this process.
type testClient struct {
	t      *testing.T
	socket net.Conn
	next   uint32
}

var startOnce sync.Once
var testServer *server
var testKey ed25519.PrivateKey

func connectTest(t *testing.T) *testClient {
	startOnce.Do(func() {
		public, private, _ := ed25519.GenerateKey(nil)
		testKey = private
		if err := adoptOrphans(); err != nil {
			t.Fatal(err)
		}
		testServer = newServer(public)
		go testServer.watchSignals()
	})
	c := dialTest(t)
	challenge := c.hello()
	c.prove(ed25519.Sign(testKey, append([]byte(signedPrefix+"unix\n"), challenge...)))
	answer := c.receive()
	if answer.kind != kindAnswer || bytes.Contains(answer.payload, []byte("error")) {
		t.Fatalf("not authenticated: %s", answer.payload)
	}
	return c
}

func dialTest(t *testing.T) *testClient {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go testServer.accept(listener)
	socket, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		socket.Close()
		listener.Close()
	})
	return &testClient{t: t, socket: socket, next: 1}
}

func (c *testClient) hello() []byte {
	var hello struct {
		Protocol  int
		Challenge []byte
	}
	if err := json.Unmarshal(c.receive().payload, &hello); err != nil || hello.Protocol != protocolVersion {
		c.t.Fatalf("hello: %+v, %v", hello, err)
	}
	return hello.Challenge
}

func (c *testClient) prove(signature []byte) {
	text, _ := json.Marshal(map[string][]byte{"signature": signature})
	c.send(frame{kindRequest, 0, text})
}

func (c *testClient) send(f frame) {
	if _, err := c.socket.Write(appendFrame(nil, f)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testClient) receive() frame {
	f, err := readFrame(c.socket, maxFrame)
	if err != nil {
		c.t.Fatalf("the connection was lost: %v", err)
	}
	return f
}

type any_ = map[string]any

func (c *testClient) open(request string, parameters any_) uint32 {
	id := c.next
	c.next++
	text, _ := json.Marshal(any_{"request": request, "parameters": parameters})
	c.send(frame{kindRequest, id, text})
	return id
}

// A reply is all that came back on a stream.
type reply struct {
	Result any_
	Error  *failure
	data   []byte
	end    any_
}

func (c *testClient) until(id uint32, stop func(*reply, frame) bool) reply {
	var r reply
	for {
		f := c.receive()
		if f.stream != id {
			continue
		}
		switch f.kind {
		case kindAnswer:
			json.Unmarshal(f.payload, &r)
		case kindData:
			r.data = append(r.data, f.payload...)
			c.send(frame{kindWindow, id, binary.BigEndian.AppendUint32(nil, uint32(len(f.payload)))})
		case kindEnd:
			json.Unmarshal(f.payload, &r.end)
		case kindReset:
			r.Error = &failure{}
			json.Unmarshal(f.payload, r.Error)
		}
		if stop(&r, f) {
			return r
		}
	}
}

// call waits for the answer of a request without data.
func (c *testClient) call(request string, parameters any_) reply {
	return c.until(c.open(request, parameters), func(_ *reply, f frame) bool { return f.kind == kindAnswer })
}

// run waits for the end of a request with data from the init.
func (c *testClient) run(request string, parameters any_) reply {
	return c.finish(c.open(request, parameters))
}

func (c *testClient) finish(id uint32) reply {
	return c.until(id, func(r *reply, f frame) bool { return r.Error != nil || f.kind == kindEnd })
}

// upload sends data with a request, and waits for the answer.
func (c *testClient) upload(request string, parameters any_, data []byte) reply {
	id := c.open(request, parameters)
	c.send(frame{kindData, id, data})
	c.send(frame{kindEnd, id, nil})
	return c.until(id, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
}

func (c *testClient) sh(script string) reply {
	return c.run("spawn", any_{"argv": []string{"/bin/sh", "-c", script}})
}

func wantCode(t *testing.T, r reply, code string) {
	t.Helper()
	if r.Error == nil || r.Error.Code != code {
		t.Fatalf("expected the error %s: %+v", code, r)
	}
}

func archiveOf(entries ...tar.Header) []byte {
	var buffer bytes.Buffer
	to := tar.NewWriter(&buffer)
	for _, entry := range entries {
		entry.Mode = 0o755
		to.WriteHeader(&entry)
		to.Write(make([]byte, entry.Size))
	}
	to.Close()
	return buffer.Bytes()
}

func writeTest(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
