//go:build !linux

package umad

import "errors"

var errOtherSystem = errors.New("RDMA devices are reached on Linux alone; run this command there")

// List fails: RDMA devices are reached on Linux only.
func List() ([]PortInfo, error) { return nil, errOtherSystem }

func openDevice(string) (Device, error) { return nil, errOtherSystem }
