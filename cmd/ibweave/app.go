package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// app is one run of the program.
type app struct {
	cli.Output
	stdin          io.Reader
	stdout, stderr io.Writer // as in Output
	running        bool      // the command line is valid
	nameMap        nameMap
	kinds          string // value of --kinds
	policyKinds    []fabric.KindRule
	hostGroups     hostGroups
	strict         bool            // --strict
	stdinRead      bool            // standard input was read, which works once
	interrupted    <-chan struct{} // closed by SIGINT and SIGTERM
}

// nameMap is the flag --node-name-map of the commands that read a fabric.
type nameMap struct {
	file  string // "" for none
	names map[fabric.GUID]string
}

// hostGroups is the flag --host-groups of the commands that sum up by groups of hosts.
type hostGroups struct {
	name string       // of the file, "" for none
	file *groups.File // nil for none
	told bool         // oddities of the file were printed
}

// maxArgs is cobra.MaximumNArgs with an error of wrong usage.
func (a *app) maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		a.Command = cmd
		if n == 0 && cmd.HasSubCommands() {
			return usagef("%s has no %q: want one of %s%s", cmd.CommandPath(), args[0], strings.Join(kindNames(cmd), ", "), cli.Near(args[0], allNames(cmd)))
		}
		return usagef("unexpected argument %q", args[n])
	}
}

// kindNames returns the names of a command's visible subcommands.
func kindNames(cmd *cobra.Command) []string {
	return text.Each(text.Where(cmd.Commands(), (*cobra.Command).IsAvailableCommand), (*cobra.Command).Name)
}

// allNames returns the names and aliases of all subcommands, hidden ones too.
func allNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(append(names, c.Name()), c.Aliases...)
	}
	return names
}

// topologyArg sets --topology to the argument, if there is one.
func (a *app) topologyArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f := cmd.Flags().Lookup("topology"); f.Changed {
		a.Command = cmd
		return usagef("the topology is %q and --topology %s: want one of them", args[0], f.Value)
	}
	if err := a.maxArgs(1)(cmd, args); err != nil {
		return err
	}
	return cmd.Flags().Set("topology", args[0])
}

func (a *app) require(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // no such flag: every test would find it
		}
	}
}

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

func wrong(flag, format string, args ...any) error {
	return usagef("--%s: %w", flag, fmt.Errorf(format, args...))
}

func inputf(format string, args ...any) error { return open.NewError(fmt.Errorf(format, args...)) }

// inputUnlessDone marks an error as wrong input, unless the command was interrupted.
func inputUnlessDone(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return open.NewError(err)
}

// isRefused returns true for the error of a scheme that has no trees for some multicast groups.
func isRefused(err error) bool {
	return cli.Is[*mft.RefusedError](err) || cli.Is[*mft.BudgetError](err)
}

// startStage shows a stage on standard error, see cli.StartStage.
func (a *app) startStage(name string) *cli.Stage { return cli.StartStage(a.Screen, name) }

// dumpProblems prints the problems of a topology or a dump, as listProblems does.
func (a *app) dumpProblems(problems []fabric.Problem, all bool) {
	a.listProblems(len(problems), all, func(i int) string { return problems[i].String() })
}

// fewProblems is how many lines listProblems prints unless all are wanted.
const fewProblems = 10

// listProblems prints line(0) to line(n-1) to standard error.
// Without all, it prints the first and counts the others: a
// dump from a rehearsal on ibsim contradicts every port GUID
// of a real capture. Callers set all if input was left out.
func (a *app) listProblems(n int, all bool, line func(int) string) {
	for i := range n {
		if i == fewProblems && n > fewProblems+1 && !all {
			fmt.Fprintf(a.stderr, "and %d more of these\n", n-i)
			return
		}
		fmt.Fprintln(a.stderr, line(i))
	}
}

// writeComplete calls write, and then writes the file, or standard output for "-", at once.
func (a *app) writeComplete(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return a.WriteFile(name, b.Bytes())
}

// writePictures writes a picture as SVG and PNG into the two files, "" for none.
func (a *app) writePictures(svg, png string, writeSVG, writePNG func(io.Writer) error) (err error) {
	if svg != "" {
		err = a.writeComplete(svg, writeSVG)
	}
	if png != "" && err == nil {
		err = a.writeComplete(png, writePNG)
	}
	return err
}

// sayNotes prints the notes of cli.CheckScopes, if its error err is nil, and returns err.
func (a *app) sayNotes(notes []string, err error) error {
	if err == nil {
		for _, note := range notes {
			fmt.Fprintf(a.stderr, "ibweave: %s\n", note)
		}
	}
	return err
}

// fabricSize returns "20 switches, 64 CA ports, 128 links".
func fabricSize(f *fabric.Fabric) string {
	return verify.FabricCounts{Switches: f.NumSwitches(), CAPorts: len(f.CAPorts()), Links: f.NumLinks()}.String()
}
