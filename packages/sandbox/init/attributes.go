package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
)

// fileCapabilities have no effect in a sandbox that may not set them.
const fileCapabilities = "security.capability"

// isContent tells attributes that programs of a sandbox can set from those of the kernel and of overlayfs.
func isContent(attribute string) bool {
	switch attribute {
	case "system.posix_acl_access", "system.posix_acl_default", fileCapabilities:
		return true
	}
	return strings.HasPrefix(attribute, "user.") && !strings.HasPrefix(attribute, "user.overlay.")
}

// readAttributes returns the attributes of a file or folder, and how many bytes they have. Many file systems have none.
func readAttributes(path string) (map[string]string, int, error) {
	names, err := growing(func(to []byte) (int, error) { return syscall.Listxattr(path, to) })
	if err == syscall.ENOTSUP || err == syscall.ENOSYS || names == "" {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	found, size := map[string]string{}, 0
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		if !isContent(name) {
			continue
		}
		value, err := growing(func(to []byte) (int, error) { return syscall.Getxattr(path, name, to) })
		if err == syscall.ENODATA {
			continue // It was removed meanwhile.
		}
		if err != nil {
			return nil, 0, err
		}
		found[name] = value
		size += len(name) + len(value)
	}
	return found, size, nil
}

const maxAttribute = 64 << 10 // of Linux

// growing asks for the size first. It may change meanwhile, and that of gVisor does not count the attributes of an overlay below it, for which there
// has to be room too.
func growing(read func(to []byte) (int, error)) (string, error) {
	size, err := read(nil)
	if err != nil || size == 0 {
		return "", err
	}
	for capacity := size; ; capacity = min(2*capacity, maxAttribute) {
		buffer := make([]byte, capacity)
		size, err = read(buffer)
		if err == syscall.ERANGE && capacity < maxAttribute {
			continue
		}
		return string(buffer[:max(size, 0)]), err
	}
}

// writeAttributes gives a file or folder these attributes and no others: a new one may have the access control list of its folder.
func writeAttributes(path string, wanted map[string]string) error {
	current, _, err := readAttributes(path)
	if err != nil {
		return err
	}
	for name := range current {
		if _, stays := wanted[name]; stays {
			continue
		}
		if err := syscall.Removexattr(path, name); err != nil && name != fileCapabilities {
			return fmt.Errorf("the attribute %q cannot be removed: %w", name, err)
		}
	}
	for name, value := range wanted {
		if !isContent(name) {
			return failed("invalid_archive", "the attribute %q is not one of those that are copied", name)
		}
		if is, has := current[name]; has && is == value {
			continue
		}
		if err := syscall.Setxattr(path, name, []byte(value), 0); err != nil && name != fileCapabilities {
			return fmt.Errorf("the attribute %q cannot be set: %w", name, err)
		}
	}
	return nil
}

// digestOf is the same for equal attributes; empty without any.
func digestOf(attributes map[string]string) string {
	if len(attributes) == 0 {
		return ""
	}
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		fmt.Fprintf(hash, "%d %s %d %s", len(name), name, len(attributes[name]), attributes[name])
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
