//go:build !linux

package lft

import "github.com/ibweave/ibweave/fabric"

func adviseHugePages([]fabric.PortNum) {}
