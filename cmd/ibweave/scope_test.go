package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestScopes has every flag of every command: it has a scope in scopes, and without
// what that asks for it is wrong usage, or said.
func TestScopes(t *testing.T) {
	commands := map[string]bool{}
	walk(new(app).rootCommand(), func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "ibweave ")
		if !c.Runnable() || c.HasSubCommands() {
			return
		}
		commands[name] = true
		rows, known := scopes[name]
		if !known {
			t.Errorf("%s is not in scopes (scope.go): say when each of its flags has an effect", name)
		}
		in := map[string]int{}
		for i := range rows {
			for _, f := range strings.Fields(rows[i].flags) {
				in[f]++
				if c.Flag(f) == nil {
					t.Errorf("%s has no flag --%s, which is in scopes", name, f)
				}
			}
		}
		each := func(f *pflag.Flag) {
			if n := in[f.Name]; n != 1 && !slices.Contains([]string{"help", "log-level", "log-format"}, f.Name) {
				t.Errorf("--%s of %s is in %d rows of scopes (scope.go), want 1: say when it has an effect", f.Name, name, n)
			}
		}
		c.LocalFlags().VisitAll(each)
		c.InheritedFlags().VisitAll(each)
		for i := range rows {
			for _, f := range strings.Fields(rows[i].flags) {
				checkScope(t, name, f, &rows[i])
			}
		}
	})
	for name := range scopes {
		if !commands[name] {
			t.Errorf("scopes has %s, which is no command", name)
		}
	}
}

// checkScope gives a flag with all that its row asks for, one alternative at a time,
// and without.
func checkScope(t *testing.T, command, flag string, s *scope) {
	t.Helper()
	refused := func(conditions ...string) bool {
		c, _, err := new(app).rootCommand().Find(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		var args []string
		set := func(f *pflag.Flag, value string) {
			if f == nil {
				t.Fatalf("%s: scopes has a condition on a flag that there is not: %v", command, conditions)
			}
			f.Changed = true
			if value != "" {
				if err := f.Value.Set(value); err != nil {
					t.Fatalf("%s: scopes has a value that --%s does not take: %v", command, f.Name, err)
				}
			} else if f.Value.Type() == "bool" {
				_ = f.Value.Set("true")
			}
		}
		c.InheritedFlags() // merges them
		set(c.Flag(flag), "")
		for _, condition := range conditions {
			if condition == "DIR" {
				args = []string{"dir"}
				continue
			}
			name, values, _ := strings.Cut(condition, "=")
			value, _, _ := strings.Cut(values, "|")
			set(c.Flag(name), value)
		}
		reason := withoutEffect(s, c.Flags(), args)
		return strings.HasPrefix(reason, "says nothing with")
	}
	with, not := strings.Fields(s.with), strings.Fields(s.not)
	if len(with) == 0 {
		with = []string{""}
	} else if c, _, _ := new(app).rootCommand().Find(strings.Fields(command)); !byDefault(c, s.with) && !refused() {
		t.Errorf("%s --%s: no word without %s", command, flag, s.with)
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

// TestWithoutEffect has flags that are refused, and those of which a line says so.
func TestWithoutEffect(t *testing.T) {
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"gen mesh --dims 2x2 --seed 3", 0, "ibweave: --seed says nothing without --drop-links: nothing is drawn at random then\n"},
		{"gen mesh --dims 2x2 --seed 3 --drop-links 1", 0, ""},
		{"check d --date 2026-12-31", 2, "--date says nothing without --policy: waivers are in a policy"},
		{"schedule d --check f --ordered --method circuit", 2, "says nothing with --check"},
		{"reproduce --quick", 2, "--quick says nothing without arguments"},
		{"drift d --live f --timeout 2s", 2, "--timeout says nothing with --live: files are not asked"},
		{"compile -t t -e updn --dry-run --mft-capacity 8", 2, "--mft-capacity says nothing without --groups"},
		{"sim d --trace f --sls 2", 2, "--sls says nothing with --trace: the trace says what is sent"},
	} {
		var out, err bytes.Buffer
		status := run(strings.Fields(tt.args), nil, &out, &err)
		if status != tt.status || !strings.Contains(err.String(), tt.want) || tt.want == "" && err.Len() > 0 {
			t.Errorf("%s: status %d, %s", tt.args, status, err.String())
		}
	}
}

// byDefault says whether a condition holds without any flag.
func byDefault(c *cobra.Command, condition string) bool {
	_, ok := holds(condition, c.Flags(), nil)
	return ok
}

// TestLists has flags that only list, with another one.
func TestLists(t *testing.T) {
	for command, flags := range lists {
		for _, list := range flags {
			var out, err bytes.Buffer
			args := []string{command, "--" + list, "--format", "json"}
			if list == "explain" {
				args[1] += "=credit-loop"
			}
			if status := run(args, nil, &out, &err); status != 2 || !strings.Contains(err.String(), "--format says nothing with --"+list) {
				t.Errorf("%v: status %d, %s", args, status, err.String())
			}
		}
	}
}
