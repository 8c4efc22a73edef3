package main

import (
	"crypto/ed25519"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// serveInherited serves the one client that started this process, outside of sandboxes, until the client is gone. Programs that still run are
// killed then, before this process ends: whoever cleans up after the client waits for the end of this process. What they left behind goes on. Only the end of the client ends it: signals to its whole group or service are for the client, which still needs it to clean up.
func serveInherited(number string, key ed25519.PublicKey) error {
	socket, err := inheritedSocket(number)
	if err != nil {
		return err
	}
	hideInheritedFiles()
	if err := adoptOrphans(); err != nil {
		return err
	}
	becomeLauncher()
	init := newServer(key)
	init.programsEndWithIt = true
	if init.starter, err = newThread(func() error { return nil }); err != nil {
		return err
	}
	go init.watchChildren()
	c := init.newConnection(socket)
	defer c.close()
	if err := c.authenticate(); err != nil {
		return err
	}
	c.serve()
	init.stopping.Store(true)
	init.processes.killAll(defaultGrace)
	return nil
}

func inheritedSocket(number string) (net.Conn, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("--listen fd:%s is not the number of an inherited connection", number)
	}
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	return net.FileConn(file)
}

// watchChildren reaps what was started, and orphans of it. The other signals are caught and not ignored, which programs would inherit.
func (s *server) watchChildren() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	s.processes.reap()
	for range signals {
		s.processes.reap()
	}
}
