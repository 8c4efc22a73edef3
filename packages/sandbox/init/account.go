package main

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// An account is what a process runs as.
type account struct {
	credential *syscall.Credential // nil: as this process
	home       string
}

// findAccount reads "name", "uid", "name:group" or "uid:gid". Numbers work without /etc/passwd.
func findAccount(text string) (account, error) {
	if text == "" {
		return account{home: "/root"}, nil
	}
	name, group, hasGroup := strings.Cut(text, ":")
	found, err := user.Lookup(name)
	if err != nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		if _, notNumber := strconv.ParseUint(name, 10, 32); notNumber != nil {
			return account{}, failed("no_user", "the sandbox has no user %q; use a name of /etc/passwd or a number", name)
		}
		found = &user.User{Uid: name, Gid: "0", HomeDir: "/"}
	}
	a := account{credential: &syscall.Credential{Uid: number(found.Uid), Gid: number(found.Gid)}, home: found.HomeDir}
	if hasGroup {
		if a.credential.Gid, err = findGroup(group); err != nil {
			return account{}, err
		}
	} else if groups, err := found.GroupIds(); err == nil {
		for _, id := range groups {
			a.credential.Groups = append(a.credential.Groups, number(id))
		}
	}
	// Without privileges the groups cannot be set, and need not be for the user that this process runs as.
	a.credential.NoSetGroups = os.Getuid() != 0
	return a, nil
}

func findGroup(text string) (uint32, error) {
	if found, err := user.LookupGroup(text); err == nil {
		return number(found.Gid), nil
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, failed("no_user", "the sandbox has no group %q; use a name of /etc/group or a number", text)
	}
	return uint32(id), nil
}

func number(text string) uint32 {
	id, _ := strconv.ParseUint(text, 10, 32)
	return uint32(id)
}
