//go:build !linux

package ibsim

import (
	"os"
	"os/exec"
)

// ibsim runs on Linux only; elsewhere it is never found.

func isolate(*exec.Cmd) {}

func killGroup(p *os.Process) error { return p.Kill() }
