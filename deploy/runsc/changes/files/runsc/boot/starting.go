package boot

import (
	"math"
	gc "runtime/debug"
	"time"

	"gvisor.dev/gvisor/pkg/gomaxprocs"
	"gvisor.dev/gvisor/pkg/sighandling"
)

const (
	// startMemory is what gVisor's kernel may use before garbage is collected. A start uses 8 MiB and a restore 13 MiB. It is half of what a platform
	// adds to the memory limit of a sandbox for the kernel, so that a busy program does not reach the limit in its first seconds.
	startMemory = 32 << 20
	// startTime is longer than starts and restores take.
	startTime = 2 * time.Second
	// restoreProcessors is by how many GOMAXPROCS is higher after a restore.
	restoreProcessors = 2
)

// BeginStart leaves all processors to the start: garbage is collected later.
func BeginStart() {
	gc.SetMemoryLimit(startMemory)
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

// beginRestored lets the network answer at once. All programs of a restored sandbox go on at the same moment, and the goroutines that wait for them
// would keep the others from running for ten milliseconds, after which Go interrupts them.
func beginRestored() {
	gomaxprocs.Add(restoreProcessors)
	time.AfterFunc(startTime, func() { gomaxprocs.Add(-restoreProcessors) })
}
