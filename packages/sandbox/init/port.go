package main

import (
	"io"
	"net"
	"strconv"
	"time"
)

type connectRequest struct {
	Port int `json:"port"`
}

// connectPort joins the stream with a port of the sandbox's loopback interface.
func connectPort(_ *server, on *stream, r connectRequest) (any, error) {
	if r.Port < 1 || r.Port > 65535 {
		return nil, failed("invalid_request", "%d is not a port", r.Port)
	}
	socket, err := dialLoopback(r.Port)
	if err != nil {
		return nil, failed("port_closed", "no program of the sandbox listens on port %d: %v", r.Port, err)
	}
	defer socket.Close()
	return join(on, socket)
}

// join answers the request, and passes bytes on in both directions until one side is gone.
func join(on *stream, socket *net.TCPConn) (any, error) {
	if err := on.answer(struct{}{}); err != nil {
		return nil, err
	}
	go func() {
		if _, err := io.Copy(socket, onlyReader{on}); err != nil {
			socket.Close() // one side is gone
			return
		}
		socket.CloseWrite()
	}()
	_, err := io.CopyBuffer(onlyWriter{on}, onlyReader{socket}, make([]byte, maxData))
	return struct{}{}, err
}

func dialLoopback(port int) (*net.TCPConn, error) {
	var failure error
	for _, address := range []string{"127.0.0.1", "::1"} {
		socket, err := net.DialTimeout("tcp", net.JoinHostPort(address, strconv.Itoa(port)), 5*time.Second)
		if err == nil {
			return socket.(*net.TCPConn), nil
		}
		if failure == nil {
			failure = err
		}
	}
	return nil, failure
}
