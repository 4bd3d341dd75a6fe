package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
)

// The exit statuses of every command.
const (
	exitClean       = cli.Clean
	exitFindings    = cli.Findings
	exitUsage       = cli.Usage
	exitInput       = cli.Input
	exitEnvironment = cli.Environment
)

// program is the program as users have it: libraries of tests would add 10 ms to each of its
// 300 starts. It is on the PATH, too.
var program string

func TestMain(m *testing.M) {
	short.Overlap(4)
	var err error
	if program, err = built.Program("ibweave", ".", "-ldflags=-w"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	short.UseMemory()
	os.Exit(m.Run())
}

// TestScript runs the command lines of testdata/script. Beyond testscript's
// own commands there are
//
//	status N ibweave ARG..   runs the program and wants exit status N
//	ibweave ARG..            runs the program, in this process unless make test-all does; JSON is held to its schema
//	json FILE PATH WANT      FILE has WANT at PATH, member names and indices with dots between them
//	nojson FILE PATH         FILE is one JSON document, which has nothing at PATH
//	same DIR DIR             both directories have the same files with the same bytes
//	shuffle FILE FILE SEED   copies ibnetdiscover text with its stanzas in random order
//	compress zstd|gzip FILE FILE
//	replace FILE OLD NEW     replaces the first OLD in FILE, which must be there
//	[all] COMMAND            runs the command only where tests may start other programs (short.All)
func TestScript(t *testing.T) {
	t.Parallel() // with tests that wait for other programs and use no working directory
	testscript.Run(t, testscript.Params{
		Files:               scripts(t, "testdata/script/*.txtar"), // under -short each ends at its line "[short] stop"
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			if name != "all" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return short.All(), nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("IBWEAVE", program)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ibweave": func(ts *testscript.TestScript, neg bool, args []string) {
				status(ts, neg, append([]string{"0", "ibweave"}, args...))
			},
			"status":   status,
			"json":     wantJSON,
			"nojson":   wantNoJSON,
			"same":     same,
			"shuffle":  shuffle,
			"compress": compress,
			"replace":  replace,
		},
	})
}

// scripts are files of testdata that say "ibweave" for "exec ibweave", so that each JSON document
// is held to its schema, and that programs need not start: 450 starts take 4 s of CPU time.
func scripts(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		return files
	}
	dir := t.TempDir()
	for i, name := range files {
		text := short.Must(os.ReadFile(name))(t)
		files[i] = filepath.Join(dir, filepath.Base(name))
		short.Check(t, os.WriteFile(files[i], bytes.ReplaceAll(text, []byte("\nexec ibweave "), []byte("\nibweave ")), 0o666))
	}
	return files
}

// folder guards the working directory of this process.
var folder sync.Mutex

// runHere runs a command line of a script in this process, if it does not need one of its own:
// for standard input, another number of CPUs, ibsim, other programs on the PATH, or its own file.
func runHere(ts *testscript.TestScript, args []string) (exit int, stdout string, ok bool) {
	own := slices.Contains(args, "-") || slices.Contains(args, "rehearse") || ts.Getenv("GOMAXPROCS")+ts.Getenv("SIM_HOST") != "" || ts.Getenv("PATH") != os.Getenv("PATH")
	if short.All() || args[0] != "ibweave" || own {
		return 0, "", false
	}
	folder.Lock()
	defer folder.Unlock()
	was, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	var out bytes.Buffer
	exit = run(args[1:], strings.NewReader(""), io.MultiWriter(ts.Stdout(), &out), ts.Stderr())
	ts.Check(os.Chdir(was))
	return exit, out.String(), true
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND [ARG..]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got, document, ok := runHere(ts, args[1:])
	if !ok {
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				ts.Fatalf("%v", err)
			}
			got = exit.ExitCode()
		}
		document = ts.ReadFile("stdout")
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
	if args[1] == "ibweave" {
		ts.Check(wantSchema(args[2:], document))
	}
}

// lookUp reads one JSON document and finds what is at a path, as JSON.
func lookUp(ts *testscript.TestScript, file, path string) (string, bool) {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	d.UseNumber()
	var v any
	ts.Check(d.Decode(&v))
	if d.More() {
		ts.Fatalf("%s has more than one JSON document", file)
	}
	for _, step := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = at[step]; !ok {
				return "", false
			}
		case []any:
			if step == "len" {
				v = len(at)
				continue
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return "", false
			}
			v = at[i]
		default:
			return "", false
		}
	}
	if s, ok := v.(string); ok {
		return s, true
	}
	text, err := json.Marshal(v)
	ts.Check(err)
	return string(text), true
}

func wantJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH WANT")
	}
	got, ok := lookUp(ts, args[0], args[1])
	if !ok {
		ts.Fatalf("%s has nothing at %s", args[0], args[1])
	}
	if got != args[2] {
		ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
	}
}

func wantNoJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: nojson FILE PATH")
	}
	if got, ok := lookUp(ts, args[0], args[1]); ok {
		ts.Fatalf("%s is %s, want nothing there", args[1], got)
	}
}

func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same DIR DIR")
	}
	content := func(dir string) map[string]string {
		entries, err := os.ReadDir(ts.MkAbs(dir))
		ts.Check(err)
		m := map[string]string{}
		for _, e := range entries {
			m[e.Name()] = ts.ReadFile(filepath.Join(dir, e.Name()))
		}
		if len(m) == 0 {
			ts.Fatalf("%s is empty", dir)
		}
		return m
	}
	a, b := content(args[0]), content(args[1])
	var different []string
	for name, text := range a {
		if other, ok := b[name]; !ok || other != text {
			different = append(different, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			different = append(different, name)
		}
	}
	if neg != (len(different) > 0) {
		ts.Fatalf("files that differ: %v", different)
	}
}

func shuffle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: shuffle FILE FILE SEED")
	}
	seed, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	stanzas := strings.Split(ts.ReadFile(args[0]), "\n\n")
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(stanzas), func(i, j int) { stanzas[i], stanzas[j] = stanzas[j], stanzas[i] })
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(stanzas, "\n\n")), 0o666))
}

func compress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: compress zstd|gzip FILE FILE")
	}
	var out bytes.Buffer
	data := []byte(ts.ReadFile(args[1]))
	switch args[0] {
	case "zstd":
		w, err := zstd.NewWriter(&out)
		ts.Check(err)
		_, err = w.Write(data)
		ts.Check(errors.Join(err, w.Close()))
	case "gzip":
		w := gzip.NewWriter(&out)
		_, err := w.Write(data)
		ts.Check(errors.Join(err, w.Close()))
	default:
		ts.Fatalf("compress %s: want zstd or gzip", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), out.Bytes(), 0o666))
}

func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
	from, to := unescape.Replace(args[1]), unescape.Replace(args[2])
	if !strings.Contains(text, from) {
		ts.Fatalf("%s has no %q", args[0], from)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, from, to, 1)), 0o666))
}

// Every command says in its help what the exit statuses mean.
func TestHelp(t *testing.T) {
	root := (&app{}).rootCommand()
	var paths [][]string
	cli.Walk(root, func(c *cobra.Command) {
		if c.IsAvailableCommand() || c == root {
			paths = append(paths, strings.Fields(c.CommandPath())[1:])
		}
	})
	if len(paths) < 15 {
		t.Fatalf("only %d commands", len(paths))
	}
	for _, path := range paths {
		var out, errs bytes.Buffer
		if got := run(append(path, "--help"), strings.NewReader(""), &out, &errs); got != exitClean || errs.Len() > 0 {
			t.Errorf("%v --help: exit status %d, %s", path, got, &errs)
		}
		if len(path) > 0 && !strings.Contains(out.String(), "\nExit status:\n  0  done and clean\n") {
			t.Errorf("%v --help does not list the exit statuses:\n%s", path, &out)
		}
	}
}

// Findings count however they are wrapped.
func TestExitStatus(t *testing.T) {
	short.Equal(t, exitStatus(fmt.Errorf("anything: %w", cli.ErrFindings)), exitFindings, "wrapped findings give")
}

// TestMoved has the commands that ibweave-papers has now: one line says so.
func TestMoved(t *testing.T) {
	for _, name := range []string{"reproduce", "schedule"} {
		want := fmt.Sprintf("ibweave: %s is a command of ibweave-papers: ibweave-papers %s\n", name, name)
		for _, args := range [][]string{{name}, {name, "--help"}, {name, "zhou2010", "--quick", "-o", "d"}, {"help", name}} {
			var out, errs bytes.Buffer
			if got := run(args, strings.NewReader(""), &out, &errs); got != exitUsage || errs.String() != want || out.Len() > 0 {
				t.Errorf("%v: exit status %d, %q, %q", args, got, &out, &errs)
			}
		}
	}
	var out, errs bytes.Buffer
	run([]string{"--help"}, strings.NewReader(""), &out, &errs)
	run([]string{cobra.ShellCompNoDescRequestCmd, ""}, strings.NewReader(""), &out, &errs)
	if strings.Contains(out.String(), "reproduce") || strings.Contains(out.String(), "schedule ") {
		t.Errorf("help or completion has them:\n%s", &out)
	}
}

func TestParseLoads(t *testing.T) {
	for text, want := range map[string][]float64{
		"0.5": {0.5}, "0.1:0.5:0.1": {0.1, 0.2, 0.3, 0.4, 0.5}, "0.1:0.45:0.1": {0.1, 0.2, 0.3, 0.4}, "1:1:1": {1}, "0.05:0.15:0.05": {0.05, 0.1, 0.15},
	} {
		if got, err := parseLoads(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "NaN", "Inf", "1001", "0.1:0.5", "0.5:0.1:0.1", "0.1:0.5:0", "0.1:0.5:0.1:1", "1:1000:0.000001"} {
		if got, err := parseLoads(text); err == nil || got != nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A list that is set again takes the place of the first one, and one that is wrong
// changes nothing.
func TestListValue(t *testing.T) {
	loads := []float64{9}
	flags := pflag.NewFlagSet("sim", pflag.ContinueOnError)
	cli.ListFlag(flags, &loads, "load", "", "", parseLoads)
	f := flags.Lookup("load")
	for _, tt := range []struct {
		text string
		want []float64
	}{{"0.1, 0.2:0.3:0.1", []float64{0.1, 0.2, 0.3}}, {"0.4,x", []float64{0.1, 0.2, 0.3}}, {"0.4", []float64{0.4}}, {"0.01:1000:0.01,0.01:1000:0.01", []float64{0.4}}} {
		before := slices.Clone(loads)
		_ = f.Value.Set(tt.text)
		if _, err := cli.WrongValue(f); !slices.Equal(loads, tt.want) || err != nil && !slices.Equal(loads, before) {
			t.Errorf("%s: %d loads, %v", tt.text, len(loads), err)
		}
	}
}

// Every command of docs/dev/gen.md does what it says, and the page has each kind and each flag
// for any kind.
func TestGenPage(t *testing.T) {
	page := short.Must(os.ReadFile(filepath.Join("..", "..", "docs", "dev", "gen.md")))(t)
	text := strings.ReplaceAll(string(page), "\\\n", " ")
	commands := regexp.MustCompile("(?m)(?:`|^ +)ibweave gen ([a-z][^`\n]*)").FindAllStringSubmatch(text, -1)
	if len(commands) < 6 {
		t.Fatalf("%d commands in docs/dev/gen.md, want 6 or more", len(commands))
	}
	for _, c := range commands {
		args, _, _ := strings.Cut(c[1], " -o ")
		var out, errs bytes.Buffer
		if status := run(append(append([]string{"gen"}, strings.Fields(args)...), "-o", filepath.Join(t.TempDir(), "made")), nil, &out, &errs); status != 0 || errs.Len() > 0 {
			t.Errorf("gen %s: status %d\n%s", args, status, &errs)
		}
	}
	for _, c := range new(app).rootCommand().Commands() {
		if c.Name() != "gen" {
			continue
		}
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(text, "--"+f.Name) && f.Name != "output" && f.Name != "seed" {
				t.Errorf("docs/dev/gen.md lacks --%s", f.Name)
			}
		})
		for _, kind := range kindNames(c) {
			short.Contains(t, text, "`"+kind+"`", "docs/dev/gen.md lacks", kind)
			checkPage(t, text, c, kind)
		}
	}
}

// checkPage looks for the flags of trees.
func checkPage(t *testing.T, text string, c *cobra.Command, kind string) {
	if kind != "tree" && kind != "director" {
		return
	}
	k, _ := short.Must2(c.Find([]string{kind}))(t)
	k.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(text, "--"+f.Name) && f.Name != "help" {
			t.Errorf("docs/dev/gen.md lacks --%s of %s", f.Name, kind)
		}
	})
}
