//go:build !linux

package ibsim

import (
	"os"
	"os/exec"
)

func isolate(*exec.Cmd) {}

func killGroup(p *os.Process) error { return p.Kill() }
