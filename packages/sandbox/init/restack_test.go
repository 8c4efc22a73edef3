package main

import (
	"errors"
	"reflect"
	"testing"
)

func TestMountsDirectlyBelowTheRootAreFound(t *testing.T) {
	found, err := parseMounts(`70 60 0:50 / / rw - overlay overlay rw
71 70 0:51 / /proc rw - proc proc rw
72 71 0:51 /sys /proc/sys ro - proc proc rw
73 70 0:52 / /dev rw - tmpfs tmpfs rw
74 70 8:1 /init /.aenv/init ro - ext4 /dev/vda rw
`)
	expected := sandboxMounts{root: "70", below: []string{"/proc", "/dev", "/.aenv/init"}}
	if err != nil || !reflect.DeepEqual(found, expected) {
		t.Fatalf("found %v, %v", found, err)
	}
}

func TestAMountWhosePathIsEscapedIsRefused(t *testing.T) {
	_, err := parseMounts("70 60 0:50 / / rw - overlay overlay rw\n71 70 0:51 / /a\\040b rw - tmpfs tmpfs rw\n")
	if !errors.Is(err, errUnsupported) {
		t.Fatalf("%v", err)
	}
}
