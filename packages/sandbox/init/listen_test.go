package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func (c *testClient) listen(t *testing.T) (stream uint32, address string) {
	t.Helper()
	stream = c.open("listen", any_{"port": 0})
	r := c.until(stream, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
	if r.Error != nil {
		t.Fatal(r.Error)
	}
	return stream, fmt.Sprintf("127.0.0.1:%v", r.Result["port"])
}

// arrival waits until a connection is announced.
func (c *testClient) arrival(listener uint32) string {
	r := c.until(listener, func(r *reply, _ frame) bool { return bytes.HasSuffix(r.data, []byte("\n")) })
	return strings.TrimSpace(string(r.data))
}

func (c *testClient) take(number string) uint32 {
	var connection int
	fmt.Sscan(number, &connection)
	id := c.open("take", any_{"connection": connection})
	c.until(id, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
	return id
}

func dialTCP(t *testing.T, address string) net.Conn {
	t.Helper()
	socket, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	socket.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { socket.Close() })
	return socket
}

func wantClosed(t *testing.T, socket net.Conn) {
	t.Helper()
	if n, err := socket.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("the connection is open: %d bytes, %v", n, err)
	}
}

func TestAListenerHandsConnectionsToItsClient(t *testing.T) {
	c := connectTest(t)
	listener, address := c.listen(t)
	for number := range 2 {
		program := dialTCP(t, address)
		id := c.take(c.arrival(listener))
		fmt.Fprintf(program, "ask %d", number)
		r := c.until(id, func(r *reply, _ frame) bool { return len(r.data) > 0 })
		if string(r.data) != fmt.Sprintf("ask %d", number) {
			t.Fatalf("received %q", r.data)
		}
		c.send(frame{kindData, id, []byte("answer")})
		c.send(frame{kindEnd, id, nil})
		answer, err := io.ReadAll(program)
		if string(answer) != "answer" || err != nil {
			t.Fatalf("the program received %q, %v", answer, err)
		}
	}
	program := dialTCP(t, address)
	id := c.take(c.arrival(listener))
	program.Close()
	c.finish(id)
}

func TestAConnectionIsTakenOnce(t *testing.T) {
	c := connectTest(t)
	listener, address := c.listen(t)
	dialTCP(t, address)
	number := c.arrival(listener)
	c.take(number)
	var connection int
	fmt.Sscan(number, &connection)
	wantCode(t, c.call("take", any_{"connection": connection}), "no_connection")
	wantCode(t, c.call("take", any_{"connection": 987654}), "no_connection")
	_, port, _ := net.SplitHostPort(address)
	var taken int
	fmt.Sscan(port, &taken)
	wantCode(t, c.call("listen", any_{"port": taken}), "port_in_use")
	wantCode(t, c.call("listen", any_{"port": 70000}), "invalid_request")
}

func TestAListenerEndsWithItsConnections(t *testing.T) {
	for name, end := range map[string]func(*testClient, uint32){
		"when its stream is reset":           func(c *testClient, id uint32) { c.send(frame{kindReset, id, []byte("{}")}) },
		"when the client's connection ended": func(c *testClient, _ uint32) { c.socket.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c := connectTest(t)
			listener, address := c.listen(t)
			taken := dialTCP(t, address)
			c.take(c.arrival(listener))
			waiting := dialTCP(t, address)
			c.arrival(listener)
			end(c, listener)
			wantClosed(t, taken)
			wantClosed(t, waiting)
			for start := time.Now(); ; {
				socket, err := net.Dial("tcp", address)
				if err != nil {
					break
				}
				socket.Close()
				if time.Since(start) > 20*time.Second {
					t.Fatal("the port is still open")
				}
			}
		})
	}
}

func TestAListenerHasALimitOfConnections(t *testing.T) {
	c := connectTest(t)
	listener, address := c.listen(t)
	first := dialTCP(t, address)
	c.take(c.arrival(listener))
	for range maxArrivals - 1 {
		dialTCP(t, address)
		c.arrival(listener)
	}
	wantClosed(t, dialTCP(t, address))
	first.Close()
	for start := time.Now(); ; {
		socket := dialTCP(t, address)
		socket.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := socket.Read(make([]byte, 1)); err != nil && err != io.EOF && !strings.Contains(err.Error(), "reset") {
			return // it is open, and waits
		}
		if time.Since(start) > 20*time.Second {
			t.Fatal("the place of a closed connection is not free again")
		}
	}
}
