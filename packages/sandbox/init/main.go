// The init is process 1 of a sandbox. It starts every program of the sandbox, streams their input and output, gives access to files
// and ports, and reaps orphans. A server connects to it and proves its identity; programs inside of the sandbox cannot.
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	version         = "0.1.0"
	protocolVersion = 1
	defaultGrace    = 5 * time.Second
	// A variable, because the arguments of a stored sandbox cannot change.
	announceVariable = "AENV_INIT_ANNOUNCES"
)

func main() {
	listen := flag.String("listen", "", "tcp:ADDRESS:PORT, unix:PATH, or fd:NUMBER for a connection that was inherited")
	key := flag.String("key", "", "the server's ed25519 public key, 32 bytes in base64")
	await := flag.String("await", "", "start the program when this path exists: a client sends it, or a former init of the pod received it")
	cwd := flag.String("cwd", "", "the working directory of the program; by default that of this process")
	copyTo := flag.String("copy-to", "", "copy this program to a file, and exit: so an image without it gets it from a volume")
	flag.Parse()
	if *copyTo != "" {
		if err := copySelf(*copyTo); err != nil {
			fail(err)
		}
		return
	}
	if err := run(*listen, *key, commandLine{argv: flag.Args(), await: *await, cwd: *cwd}); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "init: %v\n", err)
	os.Exit(1)
}

// run serves clients until the end of the sandbox. It starts the program, if one is given, without waiting for a client.
func run(listen, key string, program commandLine) error {
	publicKey, err := parseKey(key)
	if err != nil {
		return err
	}
	if number, isInherited := strings.CutPrefix(listen, "fd:"); isInherited {
		return serveInherited(number, publicKey)
	}
	listener, err := openListener(listen)
	if err != nil {
		return err
	}
	announceListening()
	hideInheritedFiles()
	if err := adoptOrphans(); err != nil {
		return err
	}
	init := newServer(publicKey)
	go init.watchSignals()
	if len(program.argv) > 0 {
		if err := init.startProgram(program); err != nil {
			return err
		}
	}
	go init.accept(listener)
	code := <-init.exit
	listener.Close()
	os.Exit(code)
	return nil
}

// announceListening writes to standard output that clients can connect, if the server asks for it: so it need not try again and again.
func announceListening() {
	if os.Getenv(announceVariable) != "" {
		fmt.Println("listening")
		os.Unsetenv(announceVariable)
	}
}

func parseKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("--key %q is not an ed25519 public key: expected %d bytes in base64", text, ed25519.PublicKeySize)
	}
	return key, nil
}

func openListener(text string) (net.Listener, error) {
	network, address, _ := strings.Cut(text, ":")
	switch {
	case network == "tcp" && address != "":
		return net.Listen("tcp", address)
	case network == "unix" && address != "":
		// A socket file that a former init left behind would make the address unusable.
		if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		// The server may be another user. It proves its identity, and the folder of the socket may be private.
		defer syscall.Umask(syscall.Umask(0))
		return net.Listen("unix", address)
	}
	return nil, fmt.Errorf("--listen %q is not an address: expected tcp:ADDRESS:PORT, unix:PATH or fd:NUMBER", text)
}

// watchSignals reaps children, and ends the sandbox when the container runtime asks for it.
func (s *server) watchSignals() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	s.processes.reap()
	for received := range signals {
		if received == syscall.SIGCHLD {
			s.processes.reap()
			continue
		}
		go s.shutdown(defaultGrace, 0)
	}
}
