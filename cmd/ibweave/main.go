// Command ibweave compiles an InfiniBand fabric into forwarding tables, proves
// them safe and hands them to OpenSM.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
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

// run is the whole program: it returns the exit status, which is cli.Environment if
// standard output could not be written (a pipe that is closed ends the process, as it
// does other tools). SIGINT and SIGTERM
// end what is under way in good order; a second one ends the process at once.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	exact := &cli.Remember{To: stdout}
	results, notes := cli.NewPaper(exact), cli.NewPaper(stderr)
	text, messages := &cli.Printable{To: results}, &cli.Printable{To: notes}
	a := &app{stdin: stdin, stdout: text, stderr: messages, results: results, notes: notes, exact: exact, terminal: stdout, screen: stderr, interrupted: ctx.Done()}
	root := a.rootCommand()
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(root) // cobra keeps these functions, and all they refer to, until the process ends
	}
	root.SetIn(stdin)
	root.SetErr(messages)
	err := files.WithMaps(func() error { return root.ExecuteContext(ctx) })
	text.End()
	_ = results.End() // exact has the error
	defer func() {
		messages.End()
		_ = notes.End()
	}()
	switch {
	case err == nil:
	case !a.running: // cobra's own errors have no type
		err = cli.NewUsageError(err)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if status := exitStatus(err); exact.Err != nil && (status == cli.Clean || status == cli.Findings) {
		err = exact.Err // what was to be said was not
	}
	return a.report(err)
}

// usageError is a command line that makes no sense.
type usageError = cli.UsageError

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// movedError is the name of a command that another program has now.
type movedError string

func (e movedError) Error() string {
	return fmt.Sprintf("%s is a command of ibweave-papers: ibweave-papers %s", string(e), string(e))
}

// inputError is input that cannot be read or is invalid.
type inputError = open.Error

func inputf(format string, args ...any) error { return open.NewError(fmt.Errorf(format, args...)) }

// inputUnlessDone makes an error wrong input, unless the command was interrupted.
func inputUnlessDone(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return open.NewError(err)
}

// exitStatus maps an error to the exit status. Errors of unknown type count as environment
// errors (4).
func exitStatus(err error) int {
	switch {
	case err == nil:
		return cli.Clean
	case errors.Is(err, context.Canceled):
		return cli.Environment
	case errors.Is(err, cli.ErrFindings), is[*lft.DomainError](err), is[*choice.RefusedError](err), is[*rehearse.UnfitError](err), is[*mesh.NotGridError](err), isRefused(err):
		return cli.Findings
	case is[*usageError](err):
		return cli.Usage
	case is[*inputError](err), is[*fabric.ParseError](err), is[*policy.RootError](err), is[*files.RefusedError](err):
		return cli.Input
	}
	return cli.Environment
}

// is returns whether an error is, or wraps, one of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isRefused returns whether a multicast scheme has no trees for some groups.
func isRefused(err error) bool { return is[*mft.RefusedError](err) || is[*mft.BudgetError](err) }

// report prints an error for people and gives the exit status.
func (a *app) report(err error) int {
	status := exitStatus(err)
	switch {
	case err == nil, errors.Is(err, cli.ErrFindings):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "ibweave: interrupted; nothing was left half done")
	case status == cli.Usage:
		for line := range strings.Lines(err.Error()) { // one for each thing that is wrong
			fmt.Fprintf(a.stderr, "ibweave: %s\n", strings.TrimSuffix(line, "\n"))
		}
		if !is[movedError](err) {
			name := "ibweave"
			if a.command != nil {
				name = a.command.CommandPath()
			}
			fmt.Fprintf(a.stderr, "Try '%s --help'.\n", name)
		}
	default:
		fmt.Fprintf(a.stderr, "ibweave: %v\n", err)
	}
	return status
}
