// Package built builds this module's programs for tests, and keeps them for other tests and
// later runs. Only tests import it. It makes no promise to other modules.
package built

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keptFor is how long a program is kept after a test last asked for it.
const keptFor = 24 * time.Hour

// contents is a format of go list: a package with its build ID and, if it is of
// this module, its folder and the files that it embeds, with tabs between them.
const contents = `{{.ImportPath}} {{.BuildID}}{{with .Module}}{{if .Main}}{{"\t"}}{{$.Dir}}{{range $.EmbedFiles}}{{"\t"}}{{$.Dir}}/{{.}}{{end}}{{end}}{{end}}`

// Program builds a package with flags into a file called name, and returns
// its path. The file is in a folder of its own in the user's cache, named
// after the contents of all packages in the file: it is linked only if one
// of them has changed. Several processes may call it at once.
//
// It opens the program's sources in this module, so that
// go test runs a test again if only the program has
// changed, not what the test imports. go test notices
// that in tests and not in TestMain.
func Program(name, pkg string, flags ...string) (file string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return build(nil, filepath.Join(cache, "ibweave-tests"), name, pkg, flags...)
}

// Module is Program for a package as a WebAssembly module,
// compressed by gzip, as make builds it; name ends in .gz.
func Module(name, pkg string) (file string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return build([]string{"GOOS=wasip1", "GOARCH=wasm"}, filepath.Join(cache, "ibweave-tests"), name, pkg, "-buildmode=c-shared", "-ldflags=-s -w")
}

// build is Program with the folder for all programs, and more variables of the environment.
func build(env []string, all, name, pkg string, flags ...string) (file string, err error) {
	flags = append([]string{"-buildvcs=false"}, flags...)
	// With -buildmode=c-shared go list leaves a header in the package's folder.
	listed := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return strings.HasPrefix(f, "-buildmode") })
	packages, err := runGo(env, "list", append(listed, "-deps", "-export", "-f", contents, pkg)...)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(all, 0o700); err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q", name, flags, os.Getenv("GOFLAGS"))
	for line := range strings.Lines(string(packages)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		fmt.Fprintln(hash, fields[0])
		for _, source := range fields[1:] {
			f, err := os.Open(source)
			if err != nil {
				return "", err
			}
			f.Close()
		}
	}
	dir := filepath.Join(all, fmt.Sprintf("%x", hash.Sum(nil)[:12]))
	file = filepath.Join(dir, name)
	now := time.Now()
	if err := os.Chtimes(dir, now, now); !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	made, err := os.MkdirTemp(all, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	plain, packed := strings.CutSuffix(filepath.Join(made, name), ".gz")
	if _, err := runGo(env, "build", append(flags, "-o", plain, pkg)...); err != nil {
		return "", err
	}
	if packed {
		if _, err := run(nil, "gzip", "-9n", plain); err != nil {
			return "", err
		}
	}
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another process was first
		return "", err
	}
	return file, removeOld(all, now.Add(-keptFor))
}

// removeOld removes the programs that no test has asked for since a time.
func removeOld(all string, since time.Time) error {
	dirs, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if info, err := d.Info(); err == nil && info.ModTime().Before(since) {
			err = os.RemoveAll(filepath.Join(all, d.Name()))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// runGo returns what a command of go prints.
func runGo(env []string, command string, args ...string) ([]byte, error) {
	return run(env, "go", append([]string{command}, args...)...)
}

func run(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, args[0], err, said.Bytes())
	}
	return out, nil
}
