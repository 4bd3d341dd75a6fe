//go:build !linux

package umad

import (
	"errors"
	"os"
)

// kernel knows no device: they are Linux's.
func kernel() *system {
	return &system{
		sys:      os.DirFS("/sys"),
		devices:  func() ([]string, error) { return nil, errors.ErrUnsupported },
		netdevs:  func() ([]netdev, error) { return nil, errors.ErrUnsupported },
		deviceOf: func(string) (string, error) { return "", errors.ErrUnsupported },
	}
}
