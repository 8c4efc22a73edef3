package sandboxsetup

import (
	"os"
	"strconv"

	"github.com/moby/sys/capability"
	"golang.org/x/sys/unix"
)

// prewarmedUmounter returns the descriptor by which the prewarmer's process is told to unmount /proc; nil if there is none.
func prewarmedUmounter() *os.File {
	const name = "AENV_UMOUNTER_FD"
	fd, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return nil
	}
	os.Unsetenv(name)
	return os.NewFile(uintptr(fd), "procfs umount sync FD")
}

// isDropped reports whether all threads were started without the capability in their bounding set.
func isDropped(c capability.Cap) bool {
	inSet, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
	return err == nil && inSet == 0
}
