package main

import (
	"bytes"
	"testing"
)

func FuzzFrameRoundTrip(f *testing.F) {
	f.Add(byte(0), uint32(0), []byte(nil))
	f.Add(byte(2), uint32(1<<32-1), []byte("data"))
	f.Fuzz(func(t *testing.T, kind byte, id uint32, payload []byte) {
		encoded := appendFrame(nil, frame{kind, id, payload})
		decoded, err := readFrame(bytes.NewReader(encoded), maxFrame)
		if err != nil || decoded.kind != kind || decoded.stream != id || !bytes.Equal(decoded.payload, payload) {
			t.Fatalf("decoded %v, %v", decoded, err)
		}
		if _, err := readFrame(bytes.NewReader(encoded[:len(encoded)-1]), maxFrame); err == nil {
			t.Fatal("a frame that was cut off was accepted")
		}
	})
}

func FuzzAnyBytesAreAFrameOrAnError(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 1, 0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, text []byte) {
		decoded, err := readFrame(bytes.NewReader(text), maxFrame)
		if err == nil && !bytes.HasPrefix(text, appendFrame(nil, decoded)) {
			t.Fatalf("%v is not what was read", decoded)
		}
	})
}
