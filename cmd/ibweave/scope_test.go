package main

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"

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

// TestWithoutEffect has the flags of testdata/no-effect.txt, without what they need: some are refused,
// and of others a line on standard error says so. What else is wrong with these commands comes later.
// Each flag that needs something is among them.
func TestWithoutEffect(t *testing.T) {
	list := string(short.Must(os.ReadFile("testdata/no-effect.txt"))(t))
	t.Chdir(t.TempDir())
	tried := map[string]bool{}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		args, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		how, want, _ := strings.Cut(rest, " | ")
		var out, err bytes.Buffer
		if status := run(strings.Fields(args), nil, &out, &err); !strings.Contains(err.String(), "ibweave: "+want) || (how == "refused") != (status == 2) {
			t.Errorf("%s: status %d, %s, want it %s: %s", args, status, err.String(), how, want)
		}
		command, _, _ := strings.Cut(args, " ")
		flag, _, _ := strings.Cut(want, " ")
		tried[command+" "+strings.TrimPrefix(flag, "--")] = true
	}
	for _, c := range new(app).rootCommand().Commands() {
		cli.Walk(c, func(sub *cobra.Command) {
			sub.Flags().VisitAll(func(f *pflag.Flag) {
				if s := cli.FlagScope(f); s.With+s.Not != "" && !tried[c.Name()+" "+f.Name] {
					t.Errorf("no-effect.txt has nothing for --%s of %s", f.Name, c.Name())
				}
			})
		})
	}
	var out, err bytes.Buffer
	if status := run(strings.Fields("gen mesh --dims 2x2 --seed 3 --drop-links 1"), nil, &out, &err); status != 0 || err.Len() > 0 {
		t.Errorf("status %d, %s", status, err.String())
	}
}

// byDefault returns true if a condition holds without any flag.
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

// oddValues are numbers that scripts pass by mistake, an empty variable among them.
var oddValues = []string{"", "0", "-1", "inf", "nan", "1e308", "1e999", "1e-300"}

// rangeLines are the command lines that try a value which a flag takes, by command or command
// and flag. D is a directory that compile wrote, NEW a folder that is not there. Commands that
// are not here ask a live fabric, or take minutes.
var rangeLines = map[string]string{
	"check":              "check D --format json",
	"check --vl-credits": "check D --mtu 512 --format json",
	"compare":            "compare -t D/fabric.ibnetdiscover -e updn,minhop --permutations 3 --bisections 3 --shifts 3 --format json",
	"compile":            "compile -t D/fabric.ibnetdiscover -e updn --dry-run --format json",
	"counters":           "counters D D/perfquery --format json",
	"counters --hot":     "counters D D/perfquery --format json",
	"drain":              "drain D --switch 0x0000000000200000 --format json",
	"move":               "move D D/fabric.ibnetdiscover --format json",
	"drift":              "drift D --live D/opensm-lfts.dump --format json",
	"gen banyan":         "gen banyan --stages 2",
	"gen director":       "gen director --ports 8 --hosts 2 --leaves 2 --spine-chips 2",
	"gen fattree":        "gen fattree --radix 4",
	"gen hypercube":      "gen hypercube --dim 2",
	"gen irregular":      "gen irregular --switches 4 --degree 2 --hosts 3",
	"gen lattice":        "gen lattice --switches 4",
	"gen mesh":           "gen mesh --dims 2x2",
	"gen myrinet4":       "gen myrinet4",
	"gen shufflenet":     "gen shufflenet",
	"gen torus":          "gen torus --dims 3x3",
	"gen tree":           "gen tree --hosts 2 --leaves 2 --spines 2",
	"place":              "place D --hosts 2 --search 3 --format json",
	"report":             "report D --counters D/perfquery -o /dev/stdout",
	"sim":                "sim D --burst 2 --format json",
	"sim --load":         "sim D --min-messages 1 --max-time 20us --format json",
	"sim --error":        "sim D --load 0.1 --min-messages 1 --max-time 20us --format json",
	"sim --warm-up":      "sim D --load 0.1 --min-messages 1 --max-time 20us --format json",
	"sim --max-time":     "sim D --load 0.1 --min-messages 1 --format json",
	"sim --scale":        "sim D --traffic D/traffic.yaml --format json",
	"sim --top":          "sim D --traffic D/traffic.yaml --format json",
	"slurm":              "slurm -t D/fabric.ibnetdiscover --format json",
	"traffic":            "traffic D --traffic D/traffic.yaml --format json",
	"whatif":             "whatif -t D/fabric.ibnetdiscover -e updn --fail links --format json",
	"whatif --seed":      "whatif -t D/fabric.ibnetdiscover -e updn --fail links --sample 2 --format json",
}

// noNumber finds what is no number in JSON or text.
var noNumber = regexp.MustCompile(`(?i)(^|[^\w])[+-]?(inf|infinity|nan)($|[^\w])`)

// Every flag that takes a number or a day is a value. It refuses an odd one in one line that
// says what would be right, exit status 2, or takes it, and all that is printed then is finite.
func TestRanges(t *testing.T) {
	d := t.TempDir()
	if !testing.Short() {
		d = tables(t)
	}
	cli.Walk(new(app).rootCommand(), func(c *cobra.Command) {
		if !c.Runnable() || c.HasSubCommands() {
			return
		}
		command := strings.TrimPrefix(c.CommandPath(), "ibweave ")
		each := func(f *pflag.Flag) {
			if regexp.MustCompile(`^(int|uint|float|duration)`).MatchString(f.Value.Type()) {
				t.Errorf("--%s of %s takes any number: define it by cli.NumberFlag or cli.ParsedFlag", f.Name, command)
			}
			if v, ok := f.Value.(cli.Refusing); !ok {
				return
			} else if words, _ := v.Refused(); words != nil {
				return
			}
			for _, value := range oddValues {
				tryValue(t, d, command, f, value)
			}
		}
		c.LocalFlags().VisitAll(each)
		c.InheritedFlags().VisitAll(each)
	})
}

// tryValue gives a flag a value, and runs the command if the flag takes it.
func tryValue(t *testing.T, d, command string, f *pflag.Flag, value string) {
	t.Helper()
	var out, errs bytes.Buffer
	args := append(strings.Fields(command), "--"+f.Name+"="+value)
	set := f.Value.Set(value)
	if _, wrong := cli.WrongValue(f); set != nil || wrong != nil {
		status := run(args, nil, &out, &errs)
		_, line, _ := strings.Cut(errs.String(), "ibweave: --"+f.Name+" ")
		line, rest, _ := strings.Cut(line, "\n")
		if status != exitUsage || !strings.Contains(line, "want ") || out.Len() > 0 || !strings.Contains(rest, "Try '") {
			t.Errorf("%q: exit status %d, %s%s", args, status, &out, &errs)
		}
		return
	}
	line := rangeLines[command+" --"+f.Name]
	if line == "" {
		line = rangeLines[command]
	}
	if line == "" || testing.Short() {
		return
	}
	args = append(inputArgs(line, d, d), args[len(args)-1])
	status := run(args, nil, &out, &errs)
	if status != exitClean && status != exitFindings && (status != exitUsage || out.Len() > 0) || noNumber.Match(out.Bytes()) || strings.Contains(errs.String(), "unsupported value") {
		t.Errorf("%q: exit status %d, %.2000s%s", args, status, &out, &errs)
	}
}

// Numbers in files are held to the same: the place of N has an odd value, and the file is
// refused with its line and what would be right, or all that is printed is finite.
func TestRangesOfFiles(t *testing.T) {
	d := tables(t)
	x := filepath.Join(d, "odd")
	for _, c := range []struct{ line, text string }{
		{"traffic D --format json --traffic", "jobs: [{name: a, hosts: '0x100000,0x100002', patterns: [{pattern: alltoall, size: N}]}]\n"},
		{"traffic D --format json --traffic", "jobs: [{name: a, hosts: '0x100000,0x100002', patterns: [{pattern: alltoall, size: 1M, weight: N}]}]\n"},
		{"traffic D --format json --traffic", "jobs: [{name: a, hosts: '0x100000,0x100002', ranks-per-host: N, patterns: [{pattern: alltoall, size: 1M}]}]\n"},
		{"traffic D --format json --traffic", "background: N\njobs: [{name: a, hosts: '0x100000,0x100002', patterns: [{pattern: alltoall, size: 1M}]}]\n"},
		{"check D --format json --policy", "routing: {max-imbalance: N}\n"},
		{"check D --format json --policy", "routing: {max-hops: N}\n"},
		{"counters D --format json", "# Port extended counters: Lid 1 port 1\nPortSelect:......................1\nPortXmitData:....................N\nPortXmitWait:....................N\nSymbolErrorCounter:..............N\n"},
	} {
		for _, value := range append(oddValues, ".inf", ".nan", "5e-324", "18446744073709551615") {
			short.Check(t, os.WriteFile(x, []byte(strings.ReplaceAll(c.text, "N", value)), 0o600))
			var out, errs bytes.Buffer
			status := run(append(inputArgs(c.line, d, d), x), nil, &out, &errs)
			finite := (status == exitClean || status == exitFindings) && !noNumber.Match(out.Bytes()) && !strings.Contains(errs.String(), "unsupported value")
			if refused := status == exitInput && out.Len() == 0 && strings.Contains(errs.String(), "want ") && strings.Contains(errs.String(), x+":"); !refused && !finite {
				t.Errorf("%s with %q: exit status %d, %.1000s%s", c.line, value, status, &out, &errs)
			}
		}
	}
}

// A flag takes a number where math/big finds it between its bounds, and no other text.
func TestRangeBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := rapid.SampledFrom([][2]float64{{0, 1}, {1, 100}, {-3, 7}, {0.001, 1e9}, {1, cli.MaxNumber}, {256, 4096}}).Draw(t, "bounds")
		least, most := bounds[0], bounds[1]
		x := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-2, 2), rapid.SampledFrom([]float64{least, most, least - 1, most + 1})).Draw(t, "number")
		text := fmt.Sprintf(rapid.SampledFrom([]string{"%g", "%.3f", "%e", "%.0f"}).Draw(t, "form"), x)
		exact, ok := new(big.Rat).SetString(text)
		bound := func(x float64) *big.Rat { // as it is written: the float64 of 0.001 is a little more
			r, _ := new(big.Rat).SetString(fmt.Sprint(x))
			return r
		}
		in := ok && exact.Cmp(bound(least)) >= 0 && exact.Cmp(bound(most)) <= 0
		near := ok && exact.Sign() != 0 && exact.Cmp(bound(1e-300)) < 0 && exact.Cmp(bound(-1e-300)) > 0 // a float64 decides
		if _, err := cli.Within(least, most)(text); (err == nil) != in && !near {
			t.Fatalf("%g to %g, %q: %v, want taken %v", least, most, text, err, in)
		}
		whole, isInt := new(big.Int).SetString(text, 0)
		if math.Trunc(least) != least {
			return
		}
		in = isInt && new(big.Rat).SetInt(whole).Cmp(bound(least)) >= 0 && new(big.Rat).SetInt(whole).Cmp(bound(most)) <= 0
		if _, err := cli.Within(int(least), int(most))(text); (err == nil) != in {
			t.Fatalf("int, %g to %g, %q: %v, want taken %v", least, most, text, err, in)
		}
		in = in && whole.Sign() >= 0 && whole.Cmp(big.NewInt(math.MaxUint16)) <= 0
		if _, err := cli.Within(uint16(max(0, least)), uint16(min(most, math.MaxUint16)))(text); (err == nil) != in {
			t.Fatalf("uint16, %g to %g, %q: %v, want taken %v", least, most, text, err, in)
		}
	})
}
