package main

import (
	"strconv"
	"strings"
	"syscall"
)

const (
	memoryEventsV2 = "/sys/fs/cgroup/memory.events"
	memoryFolderV1 = "/sys/fs/cgroup/memory/"
)

// memoryCounts are counters of the kernel that only rise.
type memoryCounts struct {
	kills  int // processes of the sandbox that the kernel has ended for want of memory; of the machine, if those of the sandbox are not known
	limit  int // how often the sandbox's own limit was the cause; version 2 of control groups counts it
	stalls int // how often programs had to wait because the whole machine was short of memory; for version 1
}

// Version 1 counts what the kernel has ended, and not why. A charge that fails leaves up to this many bytes of the limit unused.
const chargedAtOnce = 1 << 20

func readMemoryCounts() memoryCounts {
	if text := readSmall(memoryEventsV2); text != "" {
		return memoryCounts{kills: countIn(text, "oom_kill "), limit: countIn(text, "oom ")}
	}
	machine := readSmall("/proc/vmstat") // none in gVisor, whose kernel ends no process for want of memory
	text := readSmall(memoryFolderV1 + "memory.oom_control")
	if text == "" {
		return memoryCounts{kills: countIn(machine, "oom_kill ")}
	}
	counts := memoryCounts{kills: countIn(text, "oom_kill ")}
	for _, zone := range []string{"dma", "dma32", "normal", "movable", "device"} {
		counts.stalls += countIn(machine, "allocstall_"+zone+" ")
	}
	return counts
}

// readMemoryCountsSince reads only what it must to see that nothing was ended.
func readMemoryCountsSince(then memoryCounts) memoryCounts {
	if text := readSmall(memoryFolderV1 + "memory.oom_control"); text != "" && countIn(text, "oom_kill ") == then.kills {
		return then
	}
	return readMemoryCounts()
}

// endedFromOutside says whether, since then, the kernel has ended a process of the sandbox that its own limit is not known to have ended:
// the machine, or a group of sandboxes, was out of memory.
func (now memoryCounts) endedFromOutside(then memoryCounts, hasReachedLimitV1 func() bool) bool {
	if now.kills == then.kills || now.limit > then.limit {
		return false
	}
	return now.stalls > then.stalls || !hasReachedLimitV1()
}

// hasReachedLimitV1 says whether the sandbox has ever used all of its memory, files of the page cache included. The kernel's counts of
// failed charges would tell when, but some versions of it do not count those of memory and swap together.
func hasReachedLimitV1() bool {
	return isFull("memory.") || isFull("memory.memsw.")
}

func isFull(prefix string) bool {
	limit, err := strconv.ParseInt(strings.TrimSpace(readSmall(memoryFolderV1+prefix+"limit_in_bytes")), 10, 64)
	peak, _ := strconv.ParseInt(strings.TrimSpace(readSmall(memoryFolderV1+prefix+"max_usage_in_bytes")), 10, 64)
	return err == nil && peak >= limit-chargedAtOnce
}

// countIn returns the number after a word at the beginning of a line; 0 if there is none.
func countIn(text, word string) int {
	at := 0
	if !strings.HasPrefix(text, word) {
		at = strings.Index(text, "\n"+word) + 1
		if at == 0 {
			return 0
		}
	}
	value, _, _ := strings.Cut(text[at+len(word):], "\n")
	count, _ := strconv.Atoi(value)
	return count
}

// readSmall reads a file of the kernel; empty if there is none. Every command reads some, and os.ReadFile takes three times as long.
func readSmall(path string) string {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd)
	var text strings.Builder
	for buffer := make([]byte, 16<<10); ; {
		n, err := syscall.Read(fd, buffer)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return text.String()
		}
		text.Write(buffer[:n])
	}
}
