// Writes the registration of precompiled seccomp filters into the packages of the sentry and the gofer.
package main

import (
	"fmt"
	"os"
	"strings"

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	_ "gvisor.dev/gvisor/pkg/sentry/platform/platforms"
	sentry "gvisor.dev/gvisor/runsc/boot/filter/config"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter/config"
)

const place = "\tprograms := make(map[string]precompiledseccomp.Program)\n"

func main() {
	write("runsc/boot/filter/filter_precompiled.go", sentry.PrecompiledPrograms)
	write("runsc/fsgofer/filter/filter_precompiled.go", gofer.PrecompiledPrograms)
}

func write(path string, precompile func() ([]precompiledseccomp.Program, error)) {
	programs, err := precompile()
	check(err)
	text, err := os.ReadFile(path)
	check(err)
	registrations := place
	for _, program := range programs {
		registrations += program.Registration("\t", "precompiledseccomp", "programs")
	}
	changed := strings.Replace(string(text), place, registrations, 1)
	if changed == string(text) {
		check(fmt.Errorf("%s does not register programs where it is expected", path))
	}
	check(os.WriteFile(path, []byte(changed), 0o644))
	fmt.Fprintln(os.Stderr, path, len(programs))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "precompile:", err)
		os.Exit(1)
	}
}
