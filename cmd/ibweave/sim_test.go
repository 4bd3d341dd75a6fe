package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// TestInterrupted ends a sweep by SIGINT and by SIGKILL after some points, and goes
// on: with the results of a sweep that was not interrupted.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		return cmd
	}
	for _, args := range [][]string{{"gen", "mesh", "--dims", "4x4", "-o", "mesh"}, {"compile", "-t", "mesh", "-e", "xy", "-o", "tables"}} {
		if out, err := command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%s%v", out, err)
		}
	}
	seeds := short.Of("1,2,3,4,5,6,7,8", "1,2,3,4")
	points := 3 * (1 + strings.Count(seeds, ","))
	sweep := func(state string) *exec.Cmd {
		return command("sim", "tables", "--load", "0.2,0.3,0.4", "--seed", seeds, "--error", "0", "--max-time", "400us", "--state", state, "--format", "csv")
	}
	want, err := sweep("whole").Output()
	if err != nil || bytes.Count(want, []byte("\n")) != points+1 {
		t.Fatalf("%v\n%s", err, want)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		state := signal.String()
		finished := func() int {
			data, err := os.ReadFile(filepath.Join(dir, state))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			return bytes.Count(data, []byte(`"state":`))
		}
		cmd := sweep(state)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		short.Check(t, cmd.Start())
		for finished() < 3 {
			time.Sleep(time.Millisecond)
		}
		short.Check(t, cmd.Process.Signal(signal))
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) {
			t.Fatalf("%s came too late: %v", signal, err)
		}
		if signal == syscall.SIGINT && (exit.ExitCode() != exitEnvironment || !strings.HasPrefix(errs.String(), "ibweave: interrupted")) {
			t.Errorf("exit status %d: %s", exit.ExitCode(), &errs)
		}
		if n := finished(); n < 3 || n >= points {
			t.Errorf("%s: %d of %d points are in the state", signal, n, points)
		}
		got, err := sweep(state).Output()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("after %s: %v\n%s\nwant\n%s", signal, err, got, want)
		}
		if n := finished(); n != points {
			t.Errorf("%d points at the end", n)
		}
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

// FuzzExperiment reads experiment files, from standard input and without a simulation: errors name
// a line of the file.
func FuzzExperiment(f *testing.F) {
	f.Add([]byte("tables: ../tables\nload: [0.1:0.3:0.1, 0.5] # comment\nrepeat: true\n"))
	f.Add([]byte("a: &x 1\nb: *x\nc: {d: e}\n"))
	f.Add([]byte("load: |\n  0.1\n---\n"))
	f.Add([]byte("{load: 0.1, ? bytes : 3, \"x\": !!binary aGk=}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := simulation{file: "-", from: map[string]*yaml.Node{}, flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
		cli.ListFlag(in.flags, &in.Loads, "load", "", "", parseLoads)
		in.flags.BoolVar(&in.Setup.Traffic.Repeat, "repeat", false, "")
		_, err := (&app{stdin: bytes.NewReader(data)}).readExperiment(&in, nil)
		if parse := (*fabric.ParseError)(nil); err != nil && (!errors.As(err, &parse) || parse.Line > bytes.Count(data, []byte("\n"))+1) {
			t.Fatal(err)
		}
	})
}
