// Package examples tests that the examples do what they say.
package examples

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// measured are the figures that differ from run to run.
var measured = regexp.MustCompile(`(?m)^(seconds +).*$`)

// generated finds in an example's README how its fabric was made.
var generated = regexp.MustCompile(`(?m)^    ibweave (gen .*)$`)

// Each example's run.sh prints its expected.txt, to which the exit status is
// added, and its fabric is what its README says. With UPDATE_EXAMPLES set,
// expected.txt is written instead.
func TestExamples(t *testing.T) {
	bin := t.TempDir()
	program := filepath.Join(bin, "ibweave")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/ibweave").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	scripts, err := filepath.Glob("*/run.sh")
	if err != nil || len(scripts) < 3 {
		t.Fatalf("examples: %v, %v", scripts, err)
	}
	for _, script := range scripts {
		dir := filepath.Dir(script)
		t.Run(dir, func(t *testing.T) {
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			args := generated.FindSubmatch(readme)
			if args == nil {
				t.Fatal("README.md does not say how the fabric was made")
			}
			fabric, err := os.ReadFile(filepath.Join(dir, "fabric.ibnetdiscover"))
			if err != nil {
				t.Fatal(err)
			}
			made, err := exec.Command(program, strings.Fields(string(args[1]))...).Output()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(made, fabric) {
				t.Errorf("ibweave %s makes another fabric.ibnetdiscover", args[1])
			}

			work := t.TempDir()
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "run.sh")
			cmd.Dir = work
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			status := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				status = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			got := string(measured.ReplaceAll(out, []byte("${1}vary"))) + fmt.Sprintf("exit status  %d\n", status)
			expected := filepath.Join(dir, "expected.txt")
			if os.Getenv("UPDATE_EXAMPLES") != "" {
				if err := os.WriteFile(expected, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("run.sh prints\n%s\nand should print\n%s", got, want)
			}
		})
	}
}
