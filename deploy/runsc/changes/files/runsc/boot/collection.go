package boot

import (
	"math"
	gc "runtime/debug"
	"time"
)

// startHeap is what a start may use before garbage is collected.
const startHeap = 96 << 20

// collectLater turns garbage collection on a while after the start, which needs all processors.
func collectLater() {
	time.AfterFunc(2*time.Second, func() {
		gc.SetGCPercent(100)
		gc.SetMemoryLimit(math.MaxInt64)
	})
}

// CollectAfterStart turns it off for the start.
func CollectAfterStart() {
	gc.SetMemoryLimit(startHeap)
	gc.SetGCPercent(-1)
}
