//go:build wasip1

package main

import "unsafe"

// The page's worker writes a request where input says, calls answer,
// and reads the parts of the answer. These stay until the next request.
var (
	asked   server
	request []byte
	parts   [][]byte
)

// input returns where to write a request of n bytes.
//
//go:wasmexport input
func input(n int32) unsafe.Pointer {
	request = make([]byte, max(n, 1))[:n]
	return unsafe.Pointer(unsafe.SliceData(request))
}

// answer answers the request, and returns the number of parts.
//
//go:wasmexport answer
func answer() int32 {
	parts = asked.answer(request)
	request = nil
	return int32(len(parts))
}

// part returns where part i of the answer is.
//
//go:wasmexport part
func part(i int32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(parts[i])) }

// size returns the length of part i in bytes.
//
//go:wasmexport size
func size(i int32) int32 { return int32(len(parts[i])) }
