package ibsim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// packages names the Debian package that has each program.
var packages = map[string]string{
	"ibsim":          "ibsim-utils",
	"libumad2sim.so": "libumad2sim0",
	"opensm":         "opensm",
	"osmtest":        "opensm",
	"dump_fts":       "infiniband-diags",
	"ibnetdiscover":  "infiniband-diags",
	"ibroute":        "infiniband-diags",
	"ibtracert":      "infiniband-diags",
	"saquery":        "infiniband-diags",
	"smpquery":       "infiniband-diags",
	"ibdmchk":        "ibutils",
}

// MissingError says that a program, or a library, is not installed.
type MissingError struct {
	Program string
	Package string // the Debian package that has it; "" when not known
}

func (e *MissingError) Error() string {
	switch {
	case runtime.GOOS != "linux":
		return e.Program + " runs on Linux alone; run this command there"
	case e.Package == "":
		return e.Program + " is not installed"
	}
	return fmt.Sprintf("%s is not installed: on Debian and Ubuntu, apt install %s", e.Program, e.Package)
}

// Unwrap returns exec.ErrNotFound.
func (e *MissingError) Unwrap() error { return exec.ErrNotFound }

// Find looks for a program on $PATH. OpenSM and the diagnostics are
// installed in sbin folders, which only root has on $PATH: Find also
// looks in the sbin beside each bin. A name with a slash is taken as
// it is. If there is no such program, the error is a *MissingError.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	if errors.Is(err, exec.ErrNotFound) && !strings.Contains(program, "/") {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if filepath.Base(dir) != "bin" {
				continue
			}
			path, err := exec.LookPath(filepath.Join(filepath.Dir(dir), "sbin", program))
			if err == nil {
				return path, nil
			}
		}
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", &MissingError{Program: program, Package: packages[filepath.Base(program)]}
	}
	return "", err
}

// preloads has the possible paths of libumad2sim.so: Debian's for any
// architecture, those of other distributions, and that of make install.
var preloads = []string{
	"/usr/lib/*/umad2sim/libumad2sim.so",
	"/usr/lib64/umad2sim/libumad2sim.so",
	"/usr/lib/umad2sim/libumad2sim.so",
	"/usr/local/lib*/umad2sim/libumad2sim.so",
	"/usr/local/lib/*/umad2sim/libumad2sim.so",
}

// findPreload looks for the library that replaces libibumad by ibsim.
func findPreload() (string, error) {
	for _, pattern := range preloads {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", &MissingError{Program: "libumad2sim.so", Package: packages["libumad2sim.so"]}
}
