package ibsim

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate puts the child of cmd into a process group of its own and has the
// kernel kill it when the thread that starts it ends.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a child and, if isolate was used on it, its children.
func killGroup(p *os.Process) error {
	if syscall.Kill(-p.Pid, syscall.SIGKILL) == nil {
		return nil
	}
	return p.Kill()
}
