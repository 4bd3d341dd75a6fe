package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/short"
)

// TestScopes has each flag with a scope in all commands that have it: one says so when the flag has no
// effect.
func TestScopes(t *testing.T) {
	checked := 0
	cli.Walk(new(app).rootCommand(), func(c *cobra.Command) {
		if !c.Runnable() || c.HasSubCommands() || c.DisableFlagParsing { // which another program has
			return
		}
		c.InheritedFlags() // merges them
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if s := cli.FlagScope(f); s.With+s.Not != "" {
				checked++
				checkScope(t, strings.TrimPrefix(c.CommandPath(), "ibweave "), f.Name, &s)
			}
		})
	})
	if checked < 100 {
		t.Errorf("%d flags with a scope, want 100 or more", checked)
	}
}

// checkScope gives a flag with all that its row asks for, one alternative at a time,
// and without.
func checkScope(t *testing.T, command, flag string, s *cli.Scope) {
	t.Helper()
	refused := func(conditions ...string) bool {
		c, _ := short.Must2(new(app).rootCommand().Find(strings.Fields(command)))(t)
		set := func(f *pflag.Flag, value string) {
			if f == nil {
				t.Fatalf("%s: scopes has a condition on a flag that there is not: %v", command, conditions)
			}
			f.Changed = true
			if value != "" {
				if err := f.Value.Set(value); err != nil {
					t.Fatalf("%s: scopes has a value that --%s does not take: %v", command, f.Name, err)
				}
				return
			}
			for _, other := range []string{"true", "0.5", "3", "4", "leaf", "alltoall", "cables", "free"} { // some value that is not the default
				if !cli.GivenFlag(f) {
					_ = f.Value.Set(other)
				}
			}
		}
		c.InheritedFlags() // merges them
		set(c.Flag(flag), "")
		for _, condition := range conditions {
			name, values, _ := strings.Cut(condition, "=")
			value, _, _ := strings.Cut(values, "|")
			set(c.Flag(name), value)
		}
		reason := cli.WithoutEffect(s, c.Flags())
		return strings.HasPrefix(reason, "has no effect with")
	}
	isName := func(condition string) bool { return strings.HasPrefix(condition, "command=") }
	with, not := slices.DeleteFunc(strings.Fields(s.With), isName), strings.Fields(s.Not)
	if len(with) == 0 {
		with = []string{""}
	} else if c, _, _ := new(app).rootCommand().Find(strings.Fields(command)); !byDefault(c, s.With) && !refused() {
		t.Errorf("%s --%s: no word without %s", command, flag, s.With)
	}
	for _, w := range with {
		conditions := strings.Fields(w)
		if refused(conditions...) {
			t.Errorf("%s --%s: refused with %s", command, flag, w)
		}
		for _, n := range not {
			if !refused(append(slices.Clone(conditions), n)...) {
				t.Errorf("%s --%s: no word with %s", command, flag, n)
			}
		}
	}
}

// withoutEffectTests has each flag that needs something, without it. Status 0 stands
// for a line on standard error; what else is wrong with these commands comes later.
var withoutEffectTests = []struct {
	args, flag, want string
	note             bool
}{
	{"check d --mtu 512", "mtu", "without --vl-credits", false},
	{"check d --date 2026-12-31", "date", "without --policy: waivers are in a policy", true},
	{"check d --source f --format json", "source", "without --format sarif or --report: other forms do not locate findings", true},
	{"check d -v --format json", "verbose", "with --format json: JSON has all of it", true},
	{"compare -t f --lfts f --lids dense", "lids", "without --engines: tables of --lfts have their LIDs and paths", true},
	{"compare -t f --lfts f --lmc 1", "lmc", "without --engines", true},
	{"compare -t f --lfts f --roots 0x1", "roots", "without --engines", true},
	{"compare -t f -e updn,spam --against spam --bisections 0", "against", "with --bisections 0: there is no bandwidth", false},
	{"place d --hosts 4 --host-group r1", "host-group", "without --host-groups: they say which hosts", false},
	{"drain d --host-group r1", "host-group", "without --host-groups: they say which hosts", false},
	{"move d f -e updn", "engine", "without --topology: DIR has its engine", false},
	{"compile -t f -e updn --dry-run --install-dir /x", "install-dir", "with --dry-run: nothing is written", true},
	{"compile -t f -e updn --dry-run --labels", "labels", "with --dry-run", true},
	{"compile -t f -e updn --dry-run --lean", "lean", "with --dry-run", true},
	{"compile -t f -e updn --dry-run --only 0x1", "only", "with --dry-run", true},
	{"compile -t f -e updn --dry-run --path-sl", "path-sl", "with --dry-run", true},
	{"compile -t f -e updn --dry-run --zstd", "zstd", "with --dry-run", true},
	{"compile -t f -e updn -o d --host-groups f", "host-groups", "without --without or --traffic: these name them", false},
	{"compile -t f -e updn -o d --uniform-floor 2", "uniform-floor", "without --traffic", false},
	{"compile -t f -e updn -o d --first-step", "first-step", "without --previous", false},
	{"compile -t f -e updn -o d --rebalance 1.5", "rebalance", "without --previous", false},
	{"compile -t f -e updn -o d --mcast comb", "mcast", "without --groups", false},
	{"compile -t f -e updn -o d --mcast-balance", "mcast-balance", "without --groups", true},
	{"compile -t f -e updn -o d --mft-capacity 8", "mft-capacity", "without --groups", true},
	{"compile -t f -e updn -o d --dims 4x4", "dims", "without --engine xy, negative-first, west-first, north-last or --lids mesh or --groups: only these look for a mesh", true},
	{"compile -t f -e updn -o d --origin 0x1", "origin", "without --engine xy", true},
	{"compile -t f -e updn -o d --no-wrap", "no-wrap", "without --engine xy", true},
	{"compile -t f -e west-first -o d --repair", "repair", "without --engine xy", true},
	{"compile -t f -e minhop -o d --roots 0x1", "roots", "without --engine updn, spam, layered, fattree: other engines", true},
	{"diff a b --format json -v", "verbose", "with --format json: JSON has all of it", true},
	{"drift d --live f --mkey 1", "mkey", "with --live: files are not asked", true},
	{"drift d --live f --retries 1", "retries", "with --live", true},
	{"drift d --live f --timeout 2s", "timeout", "with --live", true},
	{"drift d --live f --window 2", "window", "with --live", true},
	{"drift d --live f --format json --summary", "summary", "with --format json", true},
	{"drift d --live f --format json -v", "verbose", "with --format json", true},
	{"drift d --live f --summary --samples 3", "samples", "with --summary", true},
	{"gen banyan --stages 2 --seed 3", "seed", "without --drop-links or --fill or --names mixed or --speed: nothing is drawn", true},
	{"gen fattree --radix 4 --seed 3", "seed", "without --drop-links", true},
	{"gen tree --rail-spines", "rail-spines", "without --rails", false},
	{"gen director --seed 3", "seed", "without --drop-links", true},
	{"gen tree --seed 3", "seed", "without --drop-links", true},
	{"gen hypercube --dim 2 --seed 3", "seed", "without --drop-links", true},
	{"gen mesh --dims 2x2 --seed 3", "seed", "without --drop-links", true},
	{"gen myrinet4 --seed 3", "seed", "without --drop-links", true},
	{"gen shufflenet --seed 3", "seed", "without --drop-links", true},
	{"gen torus --dims 3x3 --seed 3", "seed", "without --drop-links", true},
	{"whatif --merge f --format json --top 3", "top", "with --format json", true},
	{"rehearse d --plugin f", "plugin", "without --via plugin", false},
	{"rehearse d --traffic f", "traffic", "without --via plugin", false},
	{"report d -o p --date 2026-12-31", "date", "without --policy", true},
	{"report d -o p --view turns", "view", "without --svg or --png: the page has all views", false},
	{"report d --svg p --max-entries 9", "max-entries", "without --output", true},
	{"report d --title x", "title", "without --output or --svg or --png", false},
	{"sim d --traffic f --bytes 64", "bytes", "with --traffic: the file says what is sent", false},
	{"sim d --traffic f --hosts n1", "hosts", "with --traffic", false},
	{"sim d --traffic f --rank-file f", "rank-file", "with --traffic", false},
	{"sim d --load 0.1 --rank-order leaf", "rank-order", "without --pattern: uniform traffic", true},
	{"sim d --traffic f --multicast 1", "multicast", "with --traffic", false},
	{"sim d --burst 1 --multicast 1 --pattern permutation", "pattern", "with --multicast 1: there is no unicast", false},
	{"sim d --load 0.1 --sharp 8", "sharp", "without --traffic: they are about its jobs", false},
	{"sim d --load 0.1 --repeat", "repeat", "without --multicast", false},
	{"sim d --load 0.1 --sources one", "sources", "without --multicast", false},
	{"sim d --burst 1 --arrivals deterministic", "arrivals", "without --load: only open loop", true},
	{"sim d --burst 1 --error 0.1", "error", "without --load", true},
	{"sim d --burst 1 --max-queue 9", "max-queue", "without --load", true},
	{"sim d --burst 1 --min-messages 9", "min-messages", "without --load", true},
	{"sim d --burst 1 --warm-up 1us", "warm-up", "without --load", true},
	{"sim -t f -e updn --burst 1 --roots 0x1", "roots", "without --router: only that has a spanning tree", false},
	{"sim -t f -e updn --burst 1 --tree dfs", "tree", "without --router: only that has a spanning tree", false},
	{"sim -t f --router spam --burst 1 --groups g --repeat", "repeat", "without --multicast", false},
	{"sim d --load 0.1 --output-flits 2", "output-flits", "without --copying wormhole, greedy-wormhole", false},
	{"sim d --load 0.1 --choice most-credits", "choice", "without --adaptive or --far: packets have no choice", false},
	{"sim d --load 0.1 --buffer 9000 --buffer-packets 1", "buffer", "with --buffer-packets: each lane has its own", false},
	{"sim d --load 0.1 --adaptive hbf --choose-again", "choose-again", "with --adaptive hbf: packets have no choice", false},
	{"sim d --load 0.1 --flit-bytes 32 --buffer-packets 1", "flit-bytes", "with --buffer-packets: flits are", true},
	{"sim d --load 0.1 --choose-again", "choose-again", "without --adaptive or --far", false},
	{"sim d --load 0.1 --png f", "png", "without --adaptive or --far or --engines or --vls or --traffic: the picture compares", false},
	{"sim d --load 0.1 --svg f", "svg", "without --adaptive or --far", false},
	{"sim d --load 0.1 --scale 0.5", "scale", "without --traffic: they are about its jobs", false},
	{"sim -t f --engines updn --load 0.1 --fit", "fit", "without --traffic", false},
	{"compare -t f -e updn --fit", "fit", "without --traffic: tables are fitted to its jobs", false},
	{"sim d --load 0.1 --mcast union", "mcast", "without --traffic", false},
	{"sim d --load 0.1 --top 5", "top", "without --traffic", false},
	{"sim d --load 0.1 --host-groups g", "host-groups", "without --traffic: its jobs may name groups", false},
	{"sim d --traffic f --flows 4 --adaptive free", "flows", "with --traffic", false},
	{"sim d --load 0.1 --flows 4", "flows", "without --adaptive or --far: only adaptive tables", false},
	{"report d --interactive --svg p", "interactive", "without --output: pictures take no clicks", false},
	{"report d -o p --compiler c", "compiler", "without --interactive", false},
	{"report d --counters c --svg p", "counters", "without --output or --cables: pictures show routes", false},
	{"report d --traffic c --svg p", "traffic", "without --output or --cables: pictures show routes", false},
	{"report d --host-groups c --svg p", "host-groups", "without --output or --cables: pictures show routes", false},
	{"report d -o p --before c", "before", "without --counters", false},
	{"report d -o p --seconds 3", "seconds", "without --counters", false},
	{"path d --all-from c --all-ports", "all-ports", "with --all-from: all ports of the host send then", true},
	{"rails -t f --format json --host n", "host", "with --format json: JSON has all of it", true},
	{"slurm -t f --block-size 4", "block-size", "without --format yaml, json: topology.conf has no blocks", true},
	{"compile -t f -e updn -o d -g f --adaptive", "adaptive", "with --groups: no proof covers", false},
	{"whatif -t f -e updn --fail links --seed 2", "seed", "without --sample: nothing is drawn", true},
	{"whatif -t f -e updn --fail links --format json --top 3", "top", "with --format json", true},
	{"whatif -t f -e updn --fail links --no-wrap", "no-wrap", "without --engine xy", true},
	{"whatif -t f -e updn --fail links --repair", "repair", "without --engine xy", true},
	{"whatif -t f -e minhop --fail links --roots 0x1", "roots", "without --engine updn", true},
}

// TestWithoutEffect has flags that are refused, and those of which a line says so; and
// each that needs something is among them.
func TestWithoutEffect(t *testing.T) {
	t.Chdir(t.TempDir())
	tried := map[string]bool{}
	for _, tt := range withoutEffectTests {
		var out, err bytes.Buffer
		status := run(strings.Fields(tt.args), nil, &out, &err)
		want := "ibweave: --" + tt.flag + " has no effect " + tt.want
		if !strings.Contains(err.String(), want) || tt.note == (status == 2) {
			t.Errorf("%s: status %d, %s, want %s", tt.args, status, err.String(), want)
		}
		command, _, _ := strings.Cut(tt.args, " ")
		tried[command+" "+tt.flag] = true
	}
	for _, c := range new(app).rootCommand().Commands() {
		cli.Walk(c, func(sub *cobra.Command) {
			sub.Flags().VisitAll(func(f *pflag.Flag) {
				if s := cli.FlagScope(f); s.With+s.Not != "" && !tried[c.Name()+" "+f.Name] {
					t.Errorf("withoutEffectTests has nothing for --%s of %s", f.Name, c.Name())
				}
			})
		})
	}
	var out, err bytes.Buffer
	if status := run(strings.Fields("gen mesh --dims 2x2 --seed 3 --drop-links 1"), nil, &out, &err); status != 0 || err.Len() > 0 {
		t.Errorf("status %d, %s", status, err.String())
	}
}

// byDefault says whether a condition holds without any flag.
func byDefault(c *cobra.Command, condition string) bool {
	_, ok := cli.Holds(condition, c.Flags())
	return ok
}

// TestDefaultValue has flags without effect that are set to their default values.
func TestDefaultValue(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"check --rules --format text", "sim d --load 0.1 --pattern uniform --sources all --rank-order listed"} {
		var out, err bytes.Buffer
		if status := run(strings.Fields(args), nil, &out, &err); status == exitUsage || strings.Contains(err.String(), "has no effect") {
			t.Errorf("%s: status %d, %s", args, status, err.String())
		}
	}
}
