package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const ticksPerSecond = 100 // of /proc/PID/stat, on every architecture

type stats struct {
	Load      float64 `json:"load"` // of the machine or of the sandbox's kernel, during the last minute
	Processes int     `json:"processes"`
	Runnable  int     `json:"runnable"`
	CpuMs     int64   `json:"cpu_ms"` // of the processes that live now
	MemoryKb  int64   `json:"memory_kb"`
	IdleMs    int64   `json:"idle_ms"` // since a client last asked for something else or sent data; 0 while a process is runnable
	OomKills  int     `json:"oom_kills"`
}

func readStats(s *server, _ *stream, _ struct{}) (any, error) {
	now := stats{OomKills: countOomKills(), IdleMs: (time.Now().UnixNano() - s.lastUse.Load()) / int64(time.Millisecond)}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		now.Load, _ = strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if text, err := os.ReadFile("/proc/" + entry.Name() + "/stat"); err == nil {
			now.count(string(text))
		}
	}
	if now.Runnable > 0 {
		now.IdleMs = 0
	}
	return now, nil
}

// count adds a process. The name in the line may contain anything, so fields are counted from its last parenthesis.
func (s *stats) count(line string) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 22 || fields[0] == "Z" {
		return
	}
	s.Processes++
	if fields[0] == "R" {
		s.Runnable++
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	s.CpuMs += (user + system) * 1000 / ticksPerSecond
	s.MemoryKb += pages * int64(syscall.Getpagesize()) / 1024
}

// countOomKills returns how often the kernel killed a process of the sandbox for want of memory; 0 if that is not known.
func countOomKills() int {
	for _, path := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if value, found := strings.CutPrefix(line, "oom_kill "); found {
				count, _ := strconv.Atoi(strings.TrimSpace(value))
				return count
			}
		}
	}
	return 0
}
