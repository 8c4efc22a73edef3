package sandboxsetup

import (
	"os"
	"strconv"
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
