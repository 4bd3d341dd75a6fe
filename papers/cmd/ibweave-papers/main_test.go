package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/mft/groupfile"
	"github.com/ibweave/ibweave/papers/reproduce"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sminterface/rehearse"
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
	want := short.Must(cli.Pages((&app{}).rootCommand(), "markdown"))(t)
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

// wires adds to a set the links between stages that a packet from one processor to another
// takes through a banyan network of n stages: it enters by the perfect shuffle, leaves the
// element of stage i by bit i of the address, and goes on by the butterfly. It is written from
// the paper and shares no code with the program.
func wires(n, from, to int, set map[[2]int]bool) {
	link := from << 1
	if link >= 1<<n {
		link = link - 1<<n + 1
	}
	for stage := n - 1; stage > 0; stage-- {
		if link%2 == 1 {
			link--
		}
		if to&(1<<stage) != 0 {
			link++
		}
		set[[2]int{stage, link}] = true
		low, high := link%2, link/(1<<stage)%2
		link += (high - low) + (low-high)*(1<<stage)
	}
	if link/2 != to/2 {
		panic("the last element is not that of the destination")
	}
}

// scheduleTwoPhase runs the command for messages from processors to others, and returns its
// summary, the schedule and the groups of the first phase.
func scheduleTwoPhase(t *testing.T, tables string, from, to []int, flags ...string) (links int, schedule, phaseOne string) {
	t.Helper()
	dir := t.TempDir()
	list := func(addresses []int) string {
		var names []string
		for _, a := range addresses {
			names = append(names, fmt.Sprintf("\"host %d\"", a))
		}
		return strings.Join(names, ", ")
	}
	text := fmt.Sprintf("groups:\n  - {name: g, senders: [%s], receivers: [%s]}\n", list(from), list(to))
	short.Check(t, os.WriteFile(filepath.Join(dir, "groups.yaml"), []byte(text), 0o600))
	args := []string{"schedule", tables, "-g", dir + "/groups.yaml", "--method", "two-phase", "-o", dir + "/schedule", "--phase-1", dir + "/one.yaml", "--format", "json"}
	status, out, errs := call(append(args, flags...)...)
	var d struct {
		Links   int
		Verdict string
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || status != cli.Clean || d.Verdict != "clean" {
		t.Fatalf("%v to %v: exit status %d, %v, %s%s", from, to, status, err, out, errs)
	}
	s := short.Must(os.ReadFile(dir + "/schedule"))(t)
	one := short.Must(os.ReadFile(dir + "/one.yaml"))(t)
	return d.Links, string(s), string(one)
}

var regionSend = regexp.MustCompile(`(?m)^(\d+) send \* > (\d+)(?:-(\d+))? 1$`)

// TestTwoPhaseCrossings has 50 random sets of destinations on networks of 3 to 5 stages: the
// region and the sends are those of the paper, and the links that the command counts are those
// that the packets of both phases cross.
func TestTwoPhaseCrossings(t *testing.T) {
	sets := short.Of(50, 12)
	for n := 3; n <= 5; n++ {
		dir := filepath.Join(t.TempDir(), "tables")
		compileBanyan(t, n, dir)
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		for trial := n - 3; trial < sets; trial += 3 {
			size := 1 << n
			perm := rng.Perm(size)
			f := 1 + rng.IntN(size-1)
			source, to := perm[0], slices.Sorted(slices.Values(perm[1:f+1]))
			start := rng.IntN(size - f + 1)
			var flags []string
			if trial%2 == 0 {
				flags = []string{"--start", fmt.Sprint(start)}
			}
			links, text, _ := scheduleTwoPhase(t, dir, []int{source}, to, flags...)
			m := regionSend.FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("no send to a region:\n%s", text)
			}
			var at, first, last int
			fmt.Sscan(m[1]+" "+m[2]+" "+m[2], &at, &first, &last)
			fmt.Sscan(m[3], &last)
			if trial%2 == 1 {
				start = first
			}
			region := to[f-1]-to[0] == f-1
			if region {
				start = to[0]
			}
			if at != source || first != start || last != start+f-1 || last >= size {
				t.Fatalf("%d to %v: %s, want the region from %d on", source, to, m[0], start)
			}
			crossed := map[[2]int]bool{}
			for a := first; a <= last; a++ {
				wires(n, source, a, crossed)
			}
			want := len(crossed)
			for l, d := range to {
				line := fmt.Sprintf("\n%d 1 %d > %d 2\n", start+l, source, d)
				if strings.Contains(text, line) == region {
					t.Fatalf("%d to %v: wrong sends of phase 2:\n%s", source, to, text)
				}
				if !region {
					one := map[[2]int]bool{}
					wires(n, start+l, d, one)
					want += len(one)
				}
			}
			short.Equal(t, links, want, n, "stages", source, "to", to, "region from", start, "on", "links")
		}
	}
}

// compileBanyan writes tables for a wrap-around network of n stages.
func compileBanyan(t *testing.T, n int, dir string) {
	t.Helper()
	if _, err := outdir.Write(t.Context(), dir, runBanyan(t, n, nil), outdir.Options{InstallDir: dir}); err != nil {
		t.Fatal(err)
	}
}

// runBanyan compiles a wrap-around network of n stages with groups.
func runBanyan(t *testing.T, n int, groups func(*fabric.Fabric) ([]mft.Group, error)) *compile.Result {
	t.Helper()
	f := short.Must(banyan.Banyan(n, true))(t)
	e := short.Must(compile.EngineByName("banyan"))(t)
	return short.Must(compile.Run(t.Context(), f, e, compile.Options{Groups: groups}))(t)
}

// TestTwoPhaseOnOpenSM is golden G-N3 by the command: 5 sends to 4-8, which send to 0, 3, 6, 11
// and 13, over 22 links. The group of the first phase is what compile takes and OpenSM with the
// plugin loads into ibsim's switches.
func TestTwoPhaseOnOpenSM(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tables")
	compileBanyan(t, 4, dir)
	links, text, phaseOne := scheduleTwoPhase(t, dir, []int{5}, []int{0, 3, 6, 11, 13}, "--start", "4")
	_, sends, _ := strings.Cut(text, "senders 5\n")
	if want := "4 1 5 > 0 2\n5 send * > 4-8 1\n5 1 5 > 3 2\n6 1 5 > 6 2\n7 1 5 > 11 2\n8 1 5 > 13 2\n"; links != 22 || sends != want {
		t.Errorf("%d links, want 22; sends\n%swant\n%s", links, sends, want)
	}
	// Two originators to all others, of which each has a region of its own or both have one.
	if _, _, one := scheduleTwoPhase(t, dir, []int{5, 9}, []int{0, 3, 6}, "--start", "4"); strings.Count(one, "name: region 4-7\n") != 1 || strings.Count(one, "- 0x") != 4+2 {
		t.Errorf("two originators have the groups\n%s", one)
	}
	r := runBanyan(t, 4, func(f *fabric.Fabric) ([]mft.Group, error) {
		return groupfile.Parse("one.yaml", []byte(phaseOne), f)
	})
	w := short.Must(banyan.Detect(r.Routing.Fabric))(t)
	tree := &r.Plan.Trees[0]
	if len(r.Plan.Trees) != 1 || !slices.Equal(tree.Receivers, w.Inputs[4:9]) || !slices.Equal(tree.Senders, w.Outputs[5:6]) {
		t.Fatalf("group %+v", tree)
	}
	crossed := map[[2]int]bool{}
	for a := 4; a <= 8; a++ {
		wires(4, 5, a, crossed)
	}
	for _, p := range r.Plan.Tables.Ports(tree.MLID) {
		stage, element := w.Position(r.Routing.Fabric.Owner(p))
		key := [2]int{stage, element*2 + int(r.Routing.Fabric.Num(p)) - 3}
		if stage > 0 && !crossed[key] {
			t.Errorf("the masks have link %d of stage %d, which no copy takes", key[1], stage)
		}
		delete(crossed, key)
	}
	if len(crossed) > 0 {
		t.Errorf("the masks lack %v", crossed)
	}
	if testing.Short() {
		return
	}
	t.Chdir("../../..") // to the module that has the plugin
	plugin := short.Must(built.Program(rehearse.LibraryName, "./cmd/ibweave-opensm", "-tags", "opensm", "-buildmode=c-shared", "-ldflags=-w"))(t)
	got, err := rehearse.RunPlugin(t.Context(), r.Routing.Fabric, r.Routing.Tables, rehearse.PluginOptions{
		Library: plugin, Engine: "banyan", MFT: r.Plan.Tables, Trees: r.Plan.Trees, Options: rehearse.Options{SL2VL: r.Routing.SL2VL},
		Config: func(groups string) ([]byte, error) { return outdir.PluginConfig(nil, groups) },
	})
	if err != nil || !got.Equal() || got.Multicast.Groups != 1 || got.Multicast.Equal != 1 {
		t.Errorf("OpenSM has other tables: %v, %+v", err, got)
	}
}

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
// those of ibweave-papers are known, and run with --quick under make test-all.
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
	// come later in the order. It takes a minute, and so make test-all does it.
	figures := short.Usual(!testing.Short(), false)
	if figures {
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
		case !figures:
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
