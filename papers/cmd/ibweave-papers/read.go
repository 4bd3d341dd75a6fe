package main

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state/open"
)

// source is where a fabric and its forwarding tables come from: a directory that compile
// wrote, or two files.
type source struct {
	open.Input
	dir     string // "" for none
	nameMap string // file of --node-name-map
}

// reader returns the input of a source, to be read with the program's messages.
func (a *app) reader(in *source) *open.Input {
	in.Read = a.readRaw
	in.Tell = func(f *fabric.Fabric, problems []fabric.Problem) { a.tell(f, problems, in.Lenient) }
	in.Rename = func(f *fabric.Fabric) (*fabric.Fabric, error) {
		if in.nameMap == "" {
			return f, nil
		}
		text, err := in.ReadFile(in.nameMap)
		if err != nil {
			return nil, err
		}
		names, problems, err := topology.ParseNames(in.nameMap, text)
		a.tell(f, problems, in.Lenient)
		return f.WithNames(names), err
	}
	return &in.Input
}

// readTables reads the fabric and its tables.
func (a *app) readTables(in *source) (*fabric.Fabric, *lft.Tables, error) {
	r := a.reader(in)
	if in.dir != "" {
		if err := r.Directory(in.dir); err != nil {
			return nil, nil, inputf("%w; else want -t FILE --lfts FILE", err)
		}
	}
	err := r.Tables()
	return r.State.Fabric, r.State.Tables, err
}

// tell prints what was odd in the input: a line for each rule about captures, and of the rest all
// where input was left out, else the first ten and how many more there are.
func (a *app) tell(f *fabric.Fabric, problems []fabric.Problem, all bool) {
	if f == nil {
		f = &fabric.Fabric{}
	}
	for _, x := range capture.Findings(f, problems) {
		fmt.Fprintln(a.stderr, x.Message)
	}
	problems = slices.DeleteFunc(slices.Clone(problems), func(p fabric.Problem) bool { return capture.RuleOf(p.Kind) != "" })
	const few = 10
	for i := range problems {
		if i == few && len(problems) > few+1 && !all {
			fmt.Fprintf(a.stderr, "and %d more of these\n", len(problems)-i)
			return
		}
		fmt.Fprintln(a.stderr, problems[i].String())
	}
}

// readRaw reads a whole file, or standard input for "-".
func (a *app) readRaw(name string) ([]byte, error) {
	from := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, inputf("%w", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, inputf("%s is a directory, want a file", name)
		}
		from = f
	}
	raw, err := files.ReadAll(name, from, open.Limit, new(atomic.Int64))
	if err != nil {
		return nil, inputf("%w", err)
	}
	return raw, nil
}
