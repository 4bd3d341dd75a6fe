package main

import (
	"bytes"
	"os"
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
