//go:build !linux

package dump

import "os"

func openDirect(string) *os.File { return nil }

func refusesDirect(error) bool { return false }

func newBlock() ([]byte, error) { return make([]byte, blockSize), nil }

func freeBlock([]byte) error { return nil }
