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
	"sync"
	"testing"

	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
)

// measured are the figures that differ from run to run.
var measured = regexp.MustCompile(`(?m)^(seconds +).*$`)

// generated finds in an example's README how its fabric was made.
var generated = regexp.MustCompile(`(?m)^    ibweave (gen .*)$`)

// program is ibweave, built for all tests, and papers ibweave-papers.
var (
	program = sync.OnceValue(func() string { return build("ibweave", "../cmd/ibweave") })
	papers  = sync.OnceValue(func() string { return build("ibweave-papers", "../papers/cmd/ibweave-papers") })
)

func build(name, pkg string) string {
	file, err := built.Program(name, pkg, "-ldflags=-w")
	if err != nil {
		panic(err)
	}
	return file
}

func TestMain(m *testing.M) {
	short.UseMemory()
	short.Overlap(6)                                  // Slurm looks for jobs every few seconds
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin") // has slurmctld
	status := m.Run()
	if !testing.Short() {
		if bin, err := programs(); err == nil {
			os.RemoveAll(bin)
		}
	}
	os.Exit(status)
}

// runShell runs a shell script in a directory, with the program on the PATH.
func runShell(t *testing.T, dir string, args ...string) (output string, status int) {
	t.Helper()
	return runShellWith(t, "", dir, args...)
}

// runShellWith is runShell with a variable, "NAME=value".
func runShellWith(t *testing.T, variable, dir string, args ...string) (output string, status int) {
	t.Helper()
	short.NeedPrograms(t)
	cmd := exec.Command("sh", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), variable, "PATH="+filepath.Dir(program())+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// Each example's run.sh prints its expected.txt, to which the exit status is
// added, and its fabric is what its README says. With UPDATE_EXAMPLES set,
// expected.txt is written instead.
func TestExamples(t *testing.T) {
	short.NeedPrograms(t)
	t.Parallel()
	scripts, err := filepath.Glob("*/run.sh")
	if err != nil || len(scripts) < 3 {
		t.Fatalf("examples: %v, %v", scripts, err)
	}
	for _, script := range scripts {
		dir := filepath.Dir(script)
		t.Run(dir, func(t *testing.T) {
			readme := short.Must(os.ReadFile(filepath.Join(dir, "README.md")))(t)
			args := generated.FindSubmatch(readme)
			if args == nil {
				t.Fatal("README.md does not say how the fabric was made")
			}
			fabric := short.Must(os.ReadFile(filepath.Join(dir, "fabric.ibnetdiscover")))(t)
			made := short.Must(exec.Command(program(), strings.Fields(string(args[1]))...).Output())(t)
			short.EqualList(t, made, fabric, "ibweave", args[1], "makes another fabric.ibnetdiscover")

			work := t.TempDir()
			short.Check(t, os.CopyFS(work, os.DirFS(dir)))
			out, status := runShell(t, work, "run.sh")
			got := measured.ReplaceAllString(out, "${1}vary") + fmt.Sprintf("exit status  %d\n", status)
			expected := filepath.Join(dir, "expected.txt")
			if os.Getenv("UPDATE_EXAMPLES") != "" {
				short.Check(t, os.WriteFile(expected, []byte(got), 0o666))
			}
			want := short.Must(os.ReadFile(expected))(t)
			short.Equal(t, got, string(want), "run.sh prints other text (-expected.txt +now); make update if that is right")
		})
	}
}

// docs/dev/drain.md and docs/dev/move.md begin with what their examples print, up to the files.
func TestPlanPages(t *testing.T) {
	for _, name := range []string{"drain", "move"} {
		expected := short.Must(os.ReadFile(name + "/expected.txt"))(t)
		page := short.Must(os.ReadFile("../docs/dev/" + name + ".md"))(t)
		plan, _, _ := strings.Cut(string(expected), "plan/")
		for line := range strings.Lines(plan) {
			if line = strings.TrimRight(line, " \n"); line != "" && !strings.Contains(string(page), "\n    "+line+"\n") {
				t.Errorf("docs/dev/%s.md lacks %q", name, line)
			}
		}
	}
}

// docs/dev/bound.md quotes the example that it works out.
func TestBoundPage(t *testing.T) {
	page := short.Must(os.ReadFile("../docs/dev/bound.md"))(t)
	expected := short.Must(os.ReadFile("bound/expected.txt"))(t)
	flat := strings.Join(strings.Fields(string(expected)), " ")
	quoted := regexp.MustCompile(`(?m)(^    (balance|bound|ibweave bound|0x).*\n( {17}.*\n)*)+`).FindAllString(string(page), -1)
	for _, text := range quoted {
		for part := range strings.SplitSeq(strings.Join(strings.Fields(text), " "), "..") {
			short.Contains(t, flat, strings.TrimSpace(part), "docs/dev/bound.md has", part, "and examples/bound/expected.txt does not")
		}
	}
	short.Equal(t, len(quoted), 2, "docs/dev/bound.md quotes", "texts, want 2")
}

// Pages quote examples: each line of a table is one of the example's.
func TestQuotes(t *testing.T) {
	for _, c := range []struct {
		page, example, lines string
		count                int
	}{
		{"dev/groups.md", "host-groups", `(?m)^    (  (?:HOST GROUP|rack|partition) .*)$`, 14},
		{"dev/traffic.md", "traffic", `(?m)^    ((?:traffic +\d+ jobs|JOB|cfd|train|checkpoint|BUSIEST|MF0).*)$`, 20},
		{"dev/simulator.md", "traffic", `(?m)^    ((?:traffic +\d+ jobs|JOB  |cfd  |checkpoint  |train  |all  ).*)$`, 6},
		{"dev/place.md", "place", `(?m)^    ((?:job  |free  |sets  |SET  |\d  ).*)$`, 15},
		{"dev/counters.md", "counters", `(?m)^    (  .*)$`, 24},
	} {
		page := short.Must(os.ReadFile("../docs/" + c.page))(t)
		expected := short.Must(os.ReadFile(c.example + "/expected.txt"))(t)
		lines := regexp.MustCompile(c.lines).FindAllSubmatch(page, -1)
		for _, line := range lines {
			if !bytes.Contains(expected, append(line[1], '\n')) {
				t.Errorf("docs/%s has %q, and examples/%s/expected.txt does not", c.page, line[1], c.example)
			}
		}
		short.Equal(t, len(lines), c.count, "docs/", c.page, "quotes", "lines")
	}
}
