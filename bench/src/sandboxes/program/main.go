// The only program of the measured image. It needs nothing else in it.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Println("ready")
		return
	}
	amount, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	switch os.Args[1] {
	case "files":
		writeFiles(amount)
	case "memory":
		holdMemory(amount)
	}
}

// writeFiles writes so many files of 100 KiB.
func writeFiles(count int) {
	content := make([]byte, 100<<10)
	if err := os.MkdirAll("/work", 0o755); err != nil {
		panic(err)
	}
	for n := range count {
		content[0] = byte(n)
		if err := os.WriteFile(fmt.Sprintf("/work/%d", n), content, 0o644); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
}

// holdMemory holds so many MiB, none of which are zero, and goes on until it is ended.
func holdMemory(mebibytes int) {
	held := make([]byte, mebibytes<<20)
	for at := range held {
		held[at] = byte(at>>12) | 1
	}
	fmt.Println("ready")
	for turn := 0; ; turn++ {
		held[turn%len(held)]++
		time.Sleep(time.Second)
	}
}
