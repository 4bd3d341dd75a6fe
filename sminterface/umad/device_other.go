//go:build !linux

package umad

import "errors"

// openDevice fails: the device is Linux's.
func openDevice(name string) (Device, error) {
	return nil, &OpenError{Device: name, Err: errors.ErrUnsupported}
}
