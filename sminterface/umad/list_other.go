//go:build !linux

package umad

import (
	"errors"
	"os"
)

// kernel knows no device: they are Linux's.
func kernel() *system {
	return &system{
		sys:       os.DirFS("/sys"),
		devices:   func() ([]string, error) { return nil, errors.ErrUnsupported },
		addresses: func() (map[string][]byte, error) { return nil, errors.ErrUnsupported },
	}
}
