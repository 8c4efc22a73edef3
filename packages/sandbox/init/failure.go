package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// A failure is an error with a code that a client can branch on.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f *failure) Error() string { return f.Message }

func failed(code, format string, values ...any) error {
	return &failure{Code: code, Message: fmt.Sprintf(format, values...)}
}

func failureOf(err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	return &failure{Code: codeOf(err), Message: err.Error()}
}

func codeOf(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "not_found"
	case errors.Is(err, syscall.ENOTEMPTY):
		return "not_empty" // before ErrExist, which it also is
	case errors.Is(err, fs.ErrExist):
		return "exists"
	case errors.Is(err, fs.ErrPermission):
		return "denied"
	case errors.Is(err, syscall.ENOTDIR):
		return "not_a_directory"
	case errors.Is(err, syscall.EISDIR):
		return "is_a_directory"
	case errors.Is(err, syscall.ELOOP):
		return "too_many_links"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "no_space"
	}
	return "failed"
}
