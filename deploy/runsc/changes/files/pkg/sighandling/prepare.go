package sighandling

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
)

// Prepare takes over the signals that StartSignalForwarding forwards. Go changes threads twice for each signal, which takes milliseconds on a machine
// whose processors sleep meanwhile. Signals that arrive before the forwarding are ignored.
func Prepare() {
	var signals []os.Signal
	for sig := linux.Signal(1); sig <= numSignals+1; sig++ {
		switch sig {
		case linux.SIGURG, linux.SIGPIPE, linux.SIGCHLD: // not forwarded
		default:
			signals = append(signals, unix.Signal(sig))
		}
	}
	signal.Notify(make(chan os.Signal, 1), signals...)
}
