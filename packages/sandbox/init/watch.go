package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

type watchRequest struct {
	place
	Recursive bool `json:"recursive"`
}

// A watch sends one line of JSON per change of a file or folder.
type watch struct {
	in        tree
	recursive bool
	inotify   *os.File
	on        *stream
	folders   map[int32]watched
}

type watched struct{ name, shown string }

type change struct {
	Event string `json:"event"` // create, modify, remove, rename_from, rename_to, overflow
	Path  string `json:"path,omitempty"`
}

const watchedChanges = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_ATTRIB | syscall.IN_DELETE | syscall.IN_DELETE_SELF |
	syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_MOVE_SELF

func watchFiles(s *server, on *stream, r watchRequest) (any, error) {
	in, name, err := r.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %q: %w", r.Path, err)
	}
	w := &watch{in: in, recursive: r.Recursive, inotify: os.NewFile(uintptr(fd), "inotify"), on: on, folders: map[int32]watched{}}
	defer w.inotify.Close()
	if err := w.add(name, ""); err != nil {
		return nil, err
	}
	if err := on.answer(struct{}{}); err != nil {
		return nil, err
	}
	go func() {
		<-on.context.Done()
		w.inotify.Close()
	}()
	return struct{}{}, w.run()
}

// add watches a file or folder, and with recursive the folders in it.
func (w *watch) add(name, shown string) error {
	file, err := w.in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	// The watch is for the open file and not for the path, which could be a link by now.
	id, err := syscall.InotifyAddWatch(int(w.descriptor()), fmt.Sprintf("/proc/self/fd/%d", file.Fd()), watchedChanges)
	if err != nil {
		return fmt.Errorf("cannot watch %q: %w", name, err)
	}
	w.folders[int32(id)] = watched{name, shown}
	if !w.recursive {
		return nil
	}
	entries, _ := file.ReadDir(-1)
	for _, entry := range entries {
		if entry.Type() == fs.ModeDir {
			w.addBelow(name, shown, entry.Name())
		}
	}
	return nil
}

func (w *watch) addBelow(name, shown, entry string) {
	path := filepath.Join(name, entry)
	if info, err := w.in.Lstat(path); err == nil && info.IsDir() {
		w.add(path, filepath.Join(shown, entry))
	}
}

func (w *watch) descriptor() (fd uintptr) {
	if raw, err := w.inotify.SyscallConn(); err == nil {
		raw.Control(func(open uintptr) { fd = open })
	}
	return fd
}

func (w *watch) run() error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.inotify.Read(buffer)
		if err != nil {
			return err
		}
		for at := 0; at+syscall.SizeofInotifyEvent <= n; {
			event := (*syscall.InotifyEvent)(unsafe.Pointer(&buffer[at]))
			at += syscall.SizeofInotifyEvent
			entry := strings.TrimRight(string(buffer[at:at+int(event.Len)]), "\x00")
			at += int(event.Len)
			if err := w.report(event.Wd, event.Mask, entry); err != nil {
				return err
			}
		}
	}
}

func (w *watch) report(id int32, mask uint32, entry string) error {
	if mask&syscall.IN_Q_OVERFLOW != 0 {
		return w.send(change{Event: "overflow"})
	}
	folder, known := w.folders[id]
	if mask&syscall.IN_IGNORED != 0 {
		delete(w.folders, id)
	}
	event := eventName(mask)
	// A folder below reports its own removal, and so does the folder that contains it.
	if !known || event == "" || entry == "" && folder.shown != "" {
		return nil
	}
	if w.recursive && mask&syscall.IN_ISDIR != 0 && mask&(syscall.IN_CREATE|syscall.IN_MOVED_TO) != 0 {
		w.addBelow(folder.name, folder.shown, entry)
	}
	return w.send(change{Event: event, Path: filepath.Join(folder.shown, entry)})
}

func eventName(mask uint32) string {
	switch {
	case mask&syscall.IN_CREATE != 0:
		return "create"
	case mask&(syscall.IN_MODIFY|syscall.IN_ATTRIB) != 0:
		return "modify"
	case mask&(syscall.IN_DELETE|syscall.IN_DELETE_SELF) != 0:
		return "remove"
	case mask&(syscall.IN_MOVED_FROM|syscall.IN_MOVE_SELF) != 0:
		return "rename_from"
	case mask&syscall.IN_MOVED_TO != 0:
		return "rename_to"
	}
	return ""
}

func (w *watch) send(c change) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = w.on.Write(append(line, '\n'))
	return err
}
