package boot

import (
	"math"
	gc "runtime/debug"
	"time"

	"gvisor.dev/gvisor/pkg/sighandling"
)

const (
	// startHeap is what a start may use before garbage is collected.
	startHeap = 96 << 20
	// startTime is longer than starts and restores take.
	startTime = 2 * time.Second
)

// BeginStart leaves all processors to the start: garbage is collected later.
func BeginStart() {
	gc.SetMemoryLimit(startHeap)
	gc.SetGCPercent(-1)
}

// AwaitStart does what a sandbox can do while it waits for its start.
func AwaitStart() { go sighandling.Prepare() }

func endStart() {
	time.AfterFunc(startTime, func() {
		gc.SetGCPercent(100)
		gc.SetMemoryLimit(math.MaxInt64)
	})
}
