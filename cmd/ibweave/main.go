// Command ibweave compiles an InfiniBand fabric into forwarding tables, proves
// them safe and hands them to OpenSM.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/rehearse"
	"github.com/ibweave/ibweave/state/open"
)

func main() {
	compile.TuneGC()
	go cli.WatchMemory(os.Stderr, "ibweave")
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := cli.NewOutput(stdout, stderr)
	a := &app{Output: out, stdin: stdin, stdout: out.Stdout, stderr: out.Stderr}
	return out.Run(args, func(ctx context.Context) *cobra.Command {
		a.interrupted = ctx.Done()
		root := a.rootCommand()
		if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
			completeValues(root) // cobra keeps these functions, and all they refer to, until the process ends
		}
		root.SetIn(stdin)
		return root
	}, &a.running, exitStatus, a.report)
}

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// movedError is the name of a command that another program has now.
type movedError string

func (e movedError) Error() string {
	return fmt.Sprintf("%s is a command of ibweave-papers: ibweave-papers %s", string(e), string(e))
}

func inputf(format string, args ...any) error { return open.NewError(fmt.Errorf(format, args...)) }

// inputUnlessDone makes an error wrong input, unless the command was interrupted.
func inputUnlessDone(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return open.NewError(err)
}

// exitStatus maps an error to the exit status.
func exitStatus(err error) int {
	return cli.ExitStatus(err, cli.Is[*choice.RefusedError](err) || cli.Is[*rehearse.UnfitError](err) || cli.Is[*mesh.NotGridError](err) || isRefused(err),
		cli.Is[*policy.RootError](err))
}

// isRefused returns whether a multicast scheme has no trees for some groups.
func isRefused(err error) bool {
	return cli.Is[*mft.RefusedError](err) || cli.Is[*mft.BudgetError](err)
}

// report prints an error for people.
func (a *app) report(err error) {
	switch {
	case err == nil, errors.Is(err, cli.ErrFindings):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "ibweave: interrupted; nothing was left half done")
	case exitStatus(err) == cli.Usage:
		for line := range strings.Lines(err.Error()) { // one for each thing that is wrong
			fmt.Fprintf(a.stderr, "ibweave: %s\n", strings.TrimSuffix(line, "\n"))
		}
		if !cli.Is[movedError](err) {
			fmt.Fprintf(a.stderr, "Try '%s --help'.\n", a.Command.CommandPath())
		}
	default:
		fmt.Fprintf(a.stderr, "ibweave: %v\n", err)
	}
}
