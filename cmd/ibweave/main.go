// Command ibweave compiles an InfiniBand fabric into forwarding tables, proves
// them safe and hands them to OpenSM.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
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
	results, notes := cli.NewPaper(exact, false), cli.NewPaper(stderr, true)
	text, messages := &cli.Printable{To: results}, &cli.Printable{To: notes}
	a := &app{stdin: stdin, stdout: text, stderr: messages, results: results, notes: notes, exact: exact, terminal: stdout, screen: stderr, interrupted: ctx.Done()}
	root := a.rootCommand()
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.completeValues(root) // cobra keeps these functions, and all they refer to, until the process ends
	}
	root.SetIn(stdin)
	root.SetErr(messages)
	err := root.ExecuteContext(ctx)
	text.End()
	_ = results.End() // exact has the error
	defer func() {
		messages.End()
		_ = notes.End()
	}()
	switch {
	case err == nil:
	case !a.running: // cobra's own errors have no type
		err = &usageError{err}
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if status := exitStatus(err); exact.Err != nil && (status == cli.Clean || status == cli.Findings) {
		err = exact.Err // what was to be said was not
	}
	return a.report(err)
}
