package main

import (
	"crypto/ed25519"
	"testing"
)

func TestAClientWithoutTheKeyIsRefused(t *testing.T) {
	connectTest(t)
	_, wrong, _ := ed25519.GenerateKey(nil)
	for name, sign := range map[string]func([]byte) []byte{
		"another key":        func(c []byte) []byte { return ed25519.Sign(wrong, append([]byte(signedPrefix+"unix\n"), c...)) },
		"another address":    func(c []byte) []byte { return ed25519.Sign(testKey, append([]byte(signedPrefix+"10.0.0.2:7\n"), c...)) },
		"without the prefix": func(c []byte) []byte { return ed25519.Sign(testKey, c) },
		"no signature":       func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := dialTest(t)
			c.prove(sign(c.hello()))
			c.receive() // the reason
			if _, err := readFrame(c.socket, maxFrame); err == nil {
				t.Fatal("the connection is still open")
			}
		})
	}
}

func TestAnUnknownRequestOrOptionIsAnError(t *testing.T) {
	c := connectTest(t)
	wantCode(t, c.call("fly", nil), "unknown_request")
	wantCode(t, c.call("stats", any_{"speed": 1}), "invalid_request")
}

func TestMoreDataThanTheWindowEndsTheConnection(t *testing.T) {
	c := connectTest(t)
	// A program that does not read its input: the window is never enlarged.
	id := c.open("spawn", any_{"argv": []string{"/bin/sleep", "60"}, "stdin": true, "deadline_ms": 5000})
	c.until(id, func(_ *reply, f frame) bool { return f.kind == kindAnswer })
	go func() {
		for range 20 {
			c.socket.Write(appendFrame(nil, frame{kindData, id, make([]byte, maxData)}))
		}
	}()
	violation := c.until(0, func(_ *reply, f frame) bool { return f.kind == kindReset })
	wantCode(t, violation, "protocol")
	other := connectTest(t)
	for _, p := range testServer.processes.list() {
		other.call("signal", any_{"process": p.id, "signal": "SIGKILL", "group": true})
	}
}
