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

	ProcessLimitHits int   `json:"process_limit_hits"` // how often a process could not be started; 0 if that is not known
	DiskFreeKb       int64 `json:"disk_free_kb"`       // where the sandbox's files are
	OpenFiles        int   `json:"open_files"`         // of the process with the most, if they are more than half of the limit
	OpenFilesLimit   int   `json:"open_files_limit"`
}

func readStats(s *server, _ *stream, _ struct{}) (any, error) {
	now := stats{OomKills: countOf("oom_kill ", oomFiles), ProcessLimitHits: countOf("max ", processFiles), IdleMs: (time.Now().UnixNano() - s.lastUse.Load()) / int64(time.Millisecond)}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		now.Load, _ = strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	}
	var disk syscall.Statfs_t
	if syscall.Statfs("/", &disk) == nil {
		now.DiskFreeKb = int64(disk.Bavail) * int64(disk.Bsize) / 1024
	}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		now.OpenFilesLimit = int(files.Max)
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
		now.OpenFiles = max(now.OpenFiles, countOpenFiles("/proc/"+entry.Name(), now.OpenFilesLimit/2))
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

// In version 2 and version 1 of control groups.
var (
	oomFiles     = []string{memoryEventsV2, memoryFolderV1 + "memory.oom_control"}
	processFiles = []string{"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"}
)

// countOf returns the number after a word in the first file that exists: how often the kernel enforced a limit; 0 if that is not known.
func countOf(word string, files []string) int {
	for _, path := range files {
		if text := readSmall(path); text != "" {
			return countIn(text, word)
		}
	}
	return 0
}

// countOpenFiles returns 0 for a process with few open files, without counting them: the kernel's table of them grows by doubling.
func countOpenFiles(process string, few int) int {
	text, err := os.ReadFile(process + "/status")
	if err != nil {
		return 0
	}
	_, size, _ := strings.Cut(string(text), "FDSize:")
	size, _, _ = strings.Cut(size, "\n")
	if count, err := strconv.Atoi(strings.TrimSpace(size)); err != nil || count <= few {
		return 0
	}
	folder, err := os.Open(process + "/fd")
	if err != nil {
		return 0
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	return len(names)
}
