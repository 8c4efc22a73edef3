package main

import (
	"encoding/binary"
	"os"
	"syscall"
	"time"
	"unsafe"
)

type restoredRequest struct {
	Hostname string `json:"hostname"`
	Entropy  []byte `json:"entropy"`
	NowMs    int64  `json:"now_ms"`
}

type restoredAnswer struct {
	Generation int64  `json:"generation"`
	Randomness string `json:"randomness"` // reseeded; mixed: the kernel uses it at its next reseed; or why it failed
	Hostname   string `json:"hostname"`   // set, kept, or why it failed
	Clock      string `json:"clock"`      // set, kept, or why it failed
}

// afterRestore makes a restored sandbox differ from the one it was copied from. What the sandbox may not do is reported, not an error.
func afterRestore(s *server, on *stream, r restoredRequest) (any, error) {
	if len(r.Entropy) < 32 {
		return nil, failed("invalid_request", "entropy has %d bytes; at least 32 are needed", len(r.Entropy))
	}
	answer := restoredAnswer{Randomness: reseed(r.Entropy), Hostname: "kept", Clock: "kept"}
	if r.Hostname != "" {
		answer.Hostname = outcome("set", syscall.Sethostname([]byte(r.Hostname)))
	}
	if r.NowMs > 0 {
		now := syscall.NsecToTimeval(r.NowMs * int64(time.Millisecond))
		answer.Clock = outcome("set", syscall.Settimeofday(&now))
	}
	answer.Generation = s.generation.Add(1)
	s.closeOthers(on.connection)
	return answer, nil
}

func outcome(done string, err error) string {
	if err != nil {
		return err.Error()
	}
	return done
}

// reseed mixes entropy into the kernel's random generator. Only a privileged process may make the generator use it at once.
func reseed(entropy []byte) string {
	device, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return err.Error()
	}
	defer device.Close()
	// struct rand_pool_info: bits of entropy, bytes, data
	pool := binary.NativeEndian.AppendUint32(nil, uint32(len(entropy)*8))
	pool = binary.NativeEndian.AppendUint32(pool, uint32(len(entropy)))
	pool = append(pool, entropy...)
	if ioctl(device.Fd(), ioctlAddEntropy, unsafe.Pointer(&pool[0])) == nil && ioctl(device.Fd(), ioctlReseed, nil) == nil {
		return "reseeded"
	}
	_, err = device.Write(entropy)
	return outcome("mixed", err)
}

// closeOthers ends connections from before the restore: their other ends belong to the original sandbox.
func (s *server) closeOthers(but *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.connections {
		if other != but {
			other.cancel()
			other.socket.Close()
		}
	}
}
