package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

type terminalSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// A terminal is the outer end of a pseudoterminal.
type terminal struct{ *os.File }

// openTerminal returns both ends. The inner end is for the process.
func openTerminal(size terminalSize) (*terminal, *os.File, error) {
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", err)
	}
	t := &terminal{outer}
	var number, locked int32
	err = t.control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	if err == nil {
		err = t.control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	}
	if err == nil {
		err = t.resize(size)
	}
	var inner *os.File
	if err == nil {
		inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		outer.Close()
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", err)
	}
	return t, inner, nil
}

func (t *terminal) resize(size terminalSize) error {
	// struct winsize has two more fields, for pixels.
	return t.control(syscall.TIOCSWINSZ, unsafe.Pointer(&[4]uint16{size.Rows, size.Cols}))
}

// control does not use Fd(), which would make reads block the whole thread.
func (t *terminal) control(request uintptr, argument unsafe.Pointer) error {
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	if err := raw.Control(func(fd uintptr) { failure = ioctl(fd, request, argument) }); err != nil {
		return err
	}
	return failure
}

// A terminalInput is a terminal as the input of a process: its end is the character for the end of file.
type terminalInput struct{ *terminal }

func (t terminalInput) Close() error {
	_, err := t.Write([]byte{4})
	return err
}
