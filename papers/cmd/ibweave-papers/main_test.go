package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/routing/banyan"
)

func TestMain(m *testing.M) {
	short.UseMemory()
	testscript.Main(m, map[string]func(){"ibweave-papers": main})
}

// TestScript runs the command lines of testdata/script. Beyond testscript's own commands there
// are
//
//	compiled KIND DIR     compiles a fabric of gen with updn
//	status N PROGRAM ARG..   wants exit status N
//	json FILE NAME WANT   the document in FILE has WANT under NAME
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, Cmds: map[string]func(*testscript.TestScript, bool, []string){
		"compiled": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(writeTables(args[0], ts.MkAbs(args[1])))
		},
		"status": func(ts *testscript.TestScript, _ bool, args []string) {
			got := 0
			var exit *exec.ExitError
			if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
				got = exit.ExitCode()
			} else {
				ts.Check(err)
			}
			if strconv.Itoa(got) != args[0] {
				ts.Fatalf("exit status %d, want %s", got, args[0])
			}
		},
		"json": func(ts *testscript.TestScript, _ bool, args []string) {
			var members map[string]any
			ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &members))
			if got := fmt.Sprint(members[args[1]]); got != args[2] {
				ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
			}
		},
	}})
}

// writeTables compiles a fabric of gen, as ibweave gen KIND and ibweave compile -e updn do.
func writeTables(kind, dir string) error {
	make := map[string]func() (*fabric.Fabric, error){"myrinet4": gen.Myrinet4, "shufflenet": func() (*fabric.Fabric, error) { return gen.Shufflenet(2, 3) },
		"banyan": func() (*fabric.Fabric, error) { return banyan.Banyan(3, true) }, "sources": func() (*fabric.Fabric, error) { return banyan.Banyan(3, false) }}[kind]
	f, err := make()
	if err != nil {
		return err
	}
	e, err := compile.EngineByName("updn")
	if err != nil {
		return err
	}
	r, err := compile.Run(context.Background(), f, e, compile.Options{})
	if err != nil {
		return err
	}
	_, err = outdir.Write(context.Background(), dir, r, outdir.Options{InstallDir: dir})
	return err
}

// call runs the program, and gives its exit status and what it prints.
func call(args ...string) (status int, out, errs string) {
	var stdout, stderr bytes.Buffer
	status = run(args, strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

const groups = "groups:\n  - {name: \"a\\e[31m\", receivers: [\"re:^host\"]}\n"

// tablesAndGroups writes tables and a file of groups into a folder.
func tablesAndGroups(t *testing.T) (tables, file string) {
	t.Helper()
	dir := t.TempDir()
	tables, file = filepath.Join(dir, "tables"), filepath.Join(dir, "groups.yaml")
	short.Check(t, errors.Join(writeTables("myrinet4", tables), os.WriteFile(file, []byte(groups), 0o600)))
	return tables, file
}

// Documents are what their schemas say.
func TestSchemas(t *testing.T) {
	tables, file := tablesAndGroups(t)
	for name, args := range map[string][]string{
		"reproduce.schema.json":               {"reproduce", "min/theorem2", "--quick"},
		"reproduce.schema.json#/$defs/figure": {"model", "worms", "--threes", "--stages", "2"},
		"schedule.schema.json":                {"schedule", tables, "-g", file, "-o", filepath.Join(t.TempDir(), "schedule")},
	} {
		status, out, errs := call(append(args, "--format", "json")...)
		short.MustEqual(t, status, cli.Clean, name, errs)
		c := jsonschema.NewCompiler()
		schema := short.Must(c.Compile("../../../docs/schemas/" + name))(t)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err == nil {
			err = schema.Validate(doc)
		}
		if err != nil {
			t.Errorf("%s: not what docs/schemas/%s says: %v", name, name, err)
		}
	}
}

// Flags without effect are wrong usage, or said.
func TestIdle(t *testing.T) {
	for _, tt := range []struct {
		args, flag, want string
		note             bool
	}{
		{"reproduce --again", "again", "without arguments", false},
		{"reproduce --cpus 1", "cpus", "without arguments", true},
		{"reproduce -o d", "output", "without arguments", false},
		{"reproduce --negative-binomial 3", "negative-binomial", "without arguments", true},
		{"reproduce --quick", "quick", "without arguments", true},
		{"reproduce --seed 2", "seed", "without arguments", true},
		{"schedule d --check f --classes 1", "classes", "with --check: no schedule is made", true},
		{"schedule d --check f --force", "force", "with --check", true},
		{"schedule d --check f --method circuit", "method", "with --check", true},
		{"schedule d --check f -o s", "output", "with --check", false},
		{"schedule d -g f --start 4", "start", "without --method two-phase", false},
		{"schedule d -g f --phase-1 p", "phase-1", "without --method two-phase", false},
		{"schedule d -g f --ordered", "ordered", "without --method circuit", false},
		{"schedule d -g f --return", "return", "without --method circuit", false},
		{"schedule d -g f --method circuit --max-fan-out 2", "max-fan-out", "without --method tree, tree-flood", false},
	} {
		status, _, errs := call(strings.Fields(tt.args)...)
		if want := fmt.Sprintf("ibweave-papers: --%s has no effect %s", tt.flag, tt.want); !strings.HasPrefix(errs, want) || (status == cli.Usage) == tt.note {
			t.Errorf("%s: exit status %d, %s", tt.args, status, errs)
		}
	}
	if _, _, errs := call("schedule", "d", "--check", "f", "-o", "-"); strings.Contains(errs, "has no effect") {
		t.Error(errs)
	}
}

// docs/reference/papers has what the commands say of themselves. The help text has the exit
// statuses and fits 80 columns, and flags name their values.
func TestReference(t *testing.T) {
	const dir = "../../../docs/reference/papers"
	want := short.Must(cli.Pages((&app{}).rootCommand(nil), "markdown"))(t)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(want) {
		t.Errorf("%d pages, %v; want %d", len(files), err, len(want))
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s/%s is not what the program says: run make reference", dir, name)
		}
	}
	unnamed := regexp.MustCompile(`--[a-z-]+ string`)
	for _, command := range []string{"reproduce", "model", "model lan", "schedule", "man", "version", "completion bash", "help"} {
		status, out, _ := call(append(strings.Fields(command), "--help")...)
		if status != cli.Clean || !strings.Contains(out, "\nExit status:\n  0  done and clean\n  1  a schedule with errors") || strings.Contains(out, "--fail-on") || unnamed.MatchString(out) {
			t.Errorf("%s --help: exit status %d:\n%s", command, status, out)
		}
		for line := range strings.Lines(out) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > cli.Columns && !strings.Contains(line, "brew") { // cobra's own
				t.Errorf("%s --help: more than %d columns: %s", command, cli.Columns, line)
			}
		}
	}
}

// Wrong usage says what would be right.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "a command is needed: ",
		"reproduc":                         `ibweave-papers has no "reproduc": want one of completion, help, man, model, reproduce, schedule, version; did you mean reproduce?`,
		"version x":                        `unexpected argument "x"`,
		"schedule x y":                     `unexpected argument "y"`,
		"reproduce min/fig8":               "min/theorem2; did you mean min/fig",
		"reproduce min --cpus x":           `--cpus "x": want 0 or more`,
		"reproduce min --cpus -1":          "--cpus -1: want 0 or more",
		"reproduce min --seed 1,1":         "--seed \"1,1\": want different numbers",
		"reproduce min --seed 1,-1":        "--seed \"1,-1\": want different numbers",
		"schedule x -g g --classes -1":     "--classes -1: want 1 to 2",
		"schedule x -g g --classes 3":      "--classes 3: want 1 to 2",
		"schedule x -g g --method tre":     `--method "tre": want circuit, tree, tree-flood, unicast, doubling or two-phase`,
		"schedule x -g g --max-fan-out -1": "--max-fan-out -1: want 1 or more",
		"model":                            "a model is needed: copy-rates, lan, min",
		"model mn":                         "did you mean min?",
		"model min --x m":                  `--x "m": want load, stages or fanout`,
		"model min --format xml":           `--format "xml": want text, csv, json or svg`,
		"model lan -t x --network mesh":    "network topology",
		"model lan --cpus -1":              "--cpus -1: want 0 or more",
		"model tree-header --format svg":   "there is nothing to draw",
		"reproduce --quik":                 "unknown flag: --quik; did you mean --quick?",
		"reproduce --color x":              "--color \"x\": want auto, always or never",
		"reproduce --log-level x":          "--log-level \"x\": want debug",
		"schedule --strict --lenient x":    "lenient strict",
		"man --format x":                   "--format \"x\": want man or markdown",
	} {
		status, out, errs := call(strings.Fields(args)...)
		if status != cli.Usage || out != "" || !strings.HasPrefix(errs, "ibweave-papers: ") || !strings.Contains(errs, want) || !strings.Contains(errs, "\nTry 'ibweave-papers") {
			t.Errorf("%q: exit status %d, %s%s", args, status, out, errs)
		}
	}
}

// No name in the input acts on a terminal, and what cannot be written is an error.
func TestOutput(t *testing.T) {
	tables, file := tablesAndGroups(t)
	status, out, errs := call("schedule", tables, "-g", file, "--method", "circuit", "--classes", "1", "--force", "-o", filepath.Join(t.TempDir(), "schedule"))
	if status != cli.Findings || strings.Contains(out+errs, "\x1b") || !strings.Contains(out, "31m") {
		t.Errorf("exit status %d, %q, %q", status, out, errs)
	}
	full := short.Must(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
	defer full.Close()
	for _, args := range [][]string{{"--help"}, {"reproduce"}, {"version"}, {"completion", "bash"}, {"schedule", tables, "-g", file}} {
		var errs bytes.Buffer
		if status := run(args, strings.NewReader(""), full, &errs); status != cli.Environment || !strings.HasSuffix(errs.String(), "no space left on device\n") {
			t.Errorf("%v to a full disk: exit status %d, %s", args, status, &errs)
		}
	}
}
