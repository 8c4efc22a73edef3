package main

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A frame is: u32 length | u8 kind | u32 stream | payload, big endian. The length covers all that follows it.
type frame struct {
	kind    byte
	stream  uint32
	payload []byte
}

const (
	kindRequest byte = iota // JSON, from the client
	kindAnswer              // JSON, from the init
	kindData                // bytes, counted against the receiver's window
	kindEnd                 // no more data; from the init with a JSON summary
	kindWindow              // u32: this many more bytes of data may be sent
	kindReset               // JSON: the reason why the stream ends early
)

const (
	frameHeader   = 5
	maxFrame      = 1 << 20
	maxHelloFrame = 4 << 10 // before the client has proved its identity
	initialWindow = 256 << 10
	maxData       = 64 << 10 // so that streams share the connection evenly
)

func readFrame(from io.Reader, limit uint32) (frame, error) {
	var head [4 + frameHeader]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return frame{}, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < frameHeader || length > limit {
		return frame{}, fmt.Errorf("a frame of %d bytes is not between %d and %d", length, frameHeader, limit)
	}
	payload := make([]byte, length-frameHeader)
	if _, err := io.ReadFull(from, payload); err != nil {
		return frame{}, io.ErrUnexpectedEOF
	}
	return frame{kind: head[4], stream: binary.BigEndian.Uint32(head[5:]), payload: payload}, nil
}

func appendFrame(to []byte, f frame) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(frameHeader+len(f.payload)))
	to = append(to, f.kind)
	to = binary.BigEndian.AppendUint32(to, f.stream)
	return append(to, f.payload...)
}
