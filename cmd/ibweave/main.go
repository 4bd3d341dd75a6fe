// Command ibweave compiles an InfiniBand fabric into forwarding tables, proves
// them safe and hands them to OpenSM.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ibweave/ibweave/compile"
)

func main() {
	compile.TuneGC()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit status. SIGINT and SIGTERM
// end what is under way in good order; a second one ends the process at once.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
	case !a.running: // cobra's own errors have no type
		err = &usageError{err}
	case ctx.Err() != nil:
		err = errors.Join(context.Canceled, err)
	}
	return a.report(err)
}
