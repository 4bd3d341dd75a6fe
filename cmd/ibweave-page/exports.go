//go:build wasip1

package main

import "unsafe"

// The worker writes a request where input says, calls answer, and reads the parts of the answer,
// which stay until the next one.
var (
	asked   server
	request []byte
	parts   [][]byte
)

// input is where a request of n bytes goes.
//
//go:wasmexport input
func input(n int32) unsafe.Pointer {
	request = make([]byte, max(n, 1))[:n]
	return unsafe.Pointer(unsafe.SliceData(request))
}

// answer answers the request, and says in how many parts.
//
//go:wasmexport answer
func answer() int32 {
	parts = asked.answer(request)
	request = nil
	return int32(len(parts))
}

// part is where a part of the answer is.
//
//go:wasmexport part
func part(i int32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(parts[i])) }

// size is the length of a part in bytes.
//
//go:wasmexport size
func size(i int32) int32 { return int32(len(parts[i])) }
