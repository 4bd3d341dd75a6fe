package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/papers/reproduce"
)

var (
	coverageCommand = regexp.MustCompile("`(ibweave(?:-papers)? [^`]+)`")
	coverageTest    = regexp.MustCompile("`([a-z0-9/-]+)\\.(Test[A-Za-z0-9]+)`")
	commandFlag     = regexp.MustCompile(` (--?[a-z][a-z0-9-]*)`)
)

// commandPage is the reference of a command line of ibweave: of the longest part of it that has
// a page.
func commandPage(t *testing.T, dir, command string) string {
	t.Helper()
	words := strings.Fields(command)[1:]
	for n := min(2, len(words)); n > 0; n-- {
		page, err := os.ReadFile(filepath.Join(dir, strings.Join(words[:n], "-")+".md"))
		if !errors.Is(err, fs.ErrNotExist) {
			short.Check(t, err)
			return string(page)
		}
	}
	t.Fatalf("%s: there is no such command", command)
	return ""
}

// TestCoverage has each row of docs/papers/coverage.md name a command that there is, or say why
// there is none, and tests that there are: commands of ibweave have flags of their reference, and
// those of ibweave-papers run with --quick.
func TestCoverage(t *testing.T) {
	const root = "../../.."
	page := short.Must(os.ReadFile(root + "/docs/papers/coverage.md"))(t)
	run := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 5 || !strings.HasPrefix(line, "| [") {
			continue
		}
		tests := coverageTest.FindAllStringSubmatch(cells[3], -1)
		if tests == nil {
			t.Errorf("no test: %s", line)
		}
		for _, m := range tests {
			found := false
			for _, name := range short.Must(filepath.Glob(filepath.Join(root, m[1], "*_test.go")))(t) {
				source := short.Must(os.ReadFile(name))(t)
				found = found || strings.Contains(string(source), "\nfunc "+m[2]+"(t *testing.T) {")
			}
			if !found {
				t.Errorf("%s has no test %s: %s", m[1], m[2], line)
			}
		}
		commands := coverageCommand.FindAllStringSubmatch(cells[2], -1)
		if commands == nil && !strings.HasPrefix(cells[2], "none: ") {
			t.Errorf("no command and no reason: %s", line)
		}
		for _, m := range commands {
			dir, ours := root+"/docs/reference", strings.HasPrefix(m[1], "ibweave-papers ")
			if ours {
				dir += "/papers"
				run[m[1]] = true
			}
			reference := commandPage(t, dir, m[1])
			for _, flag := range commandFlag.FindAllStringSubmatch(m[1], -1) {
				if !regexp.MustCompile(`(?m)^ +(-[a-zA-Z], )?(-[a-zA-Z], )?` + flag[1] + `\b`).MatchString(reference) {
					t.Errorf("%s has no flag %s", m[1], flag[1])
				}
			}
		}
	}
	if len(run) < 30 {
		t.Fatalf("%d commands of ibweave-papers", len(run))
	}
	tables, file := tablesAndGroups(t)
	banyanTables := filepath.Join(t.TempDir(), "banyan")
	short.Check(t, writeTables("banyan", banyanTables))
	t.Chdir(t.TempDir())
	// All figures and exhibits are made once, and are there for the commands that name some: those
	// come later in the order.
	if !testing.Short() {
		run["ibweave-papers reproduce all -o figures"] = true
	}
	for _, command := range slices.Sorted(maps.Keys(run)) {
		args := strings.Fields(command)[1:]
		switch {
		case args[0] == "schedule":
			from := tables
			if strings.Contains(command, "two-phase") {
				from = banyanTables
			}
			for i := range args {
				args[i] = strings.NewReplacer("groups.yaml", file, "tables", from).Replace(args[i])
			}
		case args[0] == "model":
		case testing.Short():
			names := slices.DeleteFunc(args[1:], func(name string) bool { return !strings.Contains(name, "/") })
			if _, err := reproduce.Find(names); err != nil {
				t.Errorf("%s: %v", command, err)
			}
			continue
		default:
			args = append(args, "--quick", "-o", "figures")
		}
		if status, out, errs := call(args...); status != cli.Clean || out == "" {
			t.Errorf("%s: exit status %d, %s", command, status, errs)
		}
	}
}

// TestModels runs the lines of docs/papers/models.md, and the examples of the help texts, in all
// forms: each says something of all models, and the same twice.
func TestModels(t *testing.T) {
	page := short.Must(os.ReadFile("../../../docs/papers/models.md"))(t)
	var lines []string
	for line := range strings.Lines(string(page)) {
		if line, ok := strings.CutPrefix(line, "    ibweave-papers "); ok {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	for _, m := range reproduce.Models {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "model "+m.Name+" ") }) {
			t.Errorf("docs/papers/models.md has no line of %s", m.Name)
		}
		lines = append(lines, "model "+m.Example)
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "'", "") // of a shell, around words without blanks
	}
	t.Chdir(t.TempDir())
	f, err := gen.Shufflenet(2, 3)
	var text bytes.Buffer
	short.Check(t, errors.Join(err, topology.Write(&text, f), os.WriteFile("fabric.ibnetdiscover", text.Bytes(), 0o600)))
	for _, line := range lines {
		want := map[string]string{"csv": ",", "json": `"id": "model/`, "svg": "<svg", "text": "model/"}
		for form, has := range want {
			status, out, errs := call(append(strings.Fields(line), "--format", form)...)
			if nothing := form == "svg" && strings.Contains(errs, "nothing to draw"); nothing && (strings.Contains(line, "worms") || strings.Contains(line, "tree-header")) {
				continue
			}
			if _, again, _ := call(append(strings.Fields(line), "--format", form, "--cpus", "1")...); status != cli.Clean || !strings.Contains(out, has) || errs != "" || again != out {
				t.Errorf("%s --format %s: exit status %d, %d bytes, %s", line, form, status, len(out), errs)
			}
		}
	}
	// A time in which nothing arrives has no points.
	if status, out, errs := call(strings.Fields("model lan --load 0.0001 --time 1000 --warmup 0 --draws 1 --format json")...); status != cli.Clean || !strings.Contains(out, `"points": []`) {
		t.Errorf("exit status %d, %s%s", status, out, errs)
	}
	for args, status := range map[string]int{"model lan -t absent": cli.Environment, "model lan -t broken": cli.Input} {
		short.Check(t, os.WriteFile("broken", []byte("Switch x\n"), 0o600))
		if got, _, errs := call(strings.Fields(args)...); got != status {
			t.Errorf("%s: exit status %d, want %d: %s", args, got, status, errs)
		}
	}
}
