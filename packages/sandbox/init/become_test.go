package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The test program starts itself with this variable, and becomes another program.
const becoming = "AENV_TEST_BECOMES"

func TestMain(m *testing.M) {
	if program, found := os.LookupEnv(becoming); found {
		os.Unsetenv(becoming)
		fail(becomeRunsc(253, strings.Fields(program)))
	}
	os.Exit(m.Run())
}

func become(t *testing.T, program string) (string, error) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), becoming+"="+program)
	output, err := command.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the test program is emulated, and cannot start itself")
	}
	return string(output), err
}

func TestChildrenOfTheProgramHaveRoomForHighDescriptors(t *testing.T) {
	// FDSize is the number of descriptors for which a process has room.
	output, err := become(t, "grep FDSize /proc/self/status")
	if fields := strings.Fields(output); err != nil || len(fields) != 2 || fields[1] != "256" {
		t.Fatalf("%q %v", output, err)
	}
	output, err = become(t, "readlink /proc/self/fd/252")
	if err != nil || output != "/dev/null\n" {
		t.Fatalf("%q %v", output, err)
	}
}

func TestAProgramThatDoesNotExistIsNamed(t *testing.T) {
	if output, err := become(t, "no-such-program"); err == nil || !strings.Contains(output, "no-such-program cannot be started") {
		t.Fatalf("%q %v", output, err)
	}
	if output, err := become(t, ""); err == nil || !strings.Contains(output, "a program is missing behind --") {
		t.Fatalf("%q %v", output, err)
	}
}
