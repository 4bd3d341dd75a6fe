// Command ibweave-papers measures the figures of papers again, with the simulators and the
// tables of ibweave, and compiles the schedules of one of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/state/open"
)

func main() {
	compile.TuneGC()
	go cli.WatchMemory(os.Stderr, "ibweave-papers")
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// app is one run of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer // what is not printable is escaped
	exact          io.Writer // standard output as it is
	screen         io.Writer // standard error as it is
	log            *zap.Logger
	command        string // the one that is meant
	running        bool   // the command line made sense
}

// run is the whole program: it returns the exit status. SIGINT and SIGTERM end what is under
// way in good order; a second one ends the process at once.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	exact := &cli.Remember{To: stdout}
	results, notes := cli.NewPaper(exact), cli.NewPaper(stderr)
	text, messages := &cli.Printable{To: results}, &cli.Printable{To: notes}
	a := &app{stdin: stdin, stdout: text, stderr: messages, exact: exact, screen: stderr, command: "ibweave-papers"}
	root := a.rootCommand(func(cmd *cobra.Command, color string) error {
		if err := notes.Set(stderr, color); err != nil {
			return err
		}
		if f := cmd.Flags().Lookup("format"); f == nil || f.Value.String() == "text" {
			return results.Set(stdout, color)
		}
		return nil
	})
	root.SetArgs(args)
	root.SetErr(messages)
	err := files.WithMaps(func() error { return root.ExecuteContext(ctx) })
	text.End()
	_ = results.End()             // exact has the error
	if err != nil && !a.running { // cobra's own errors have no type
		err = cli.NewUsageError(err)
	}
	if ctx.Err() != nil && err != nil {
		err = context.Canceled
	}
	if status := exitStatus(err); exact.Err != nil && (status == cli.Clean || status == cli.Findings) {
		err = exact.Err // what was to be said was not
	}
	a.report(err)
	messages.End()
	_ = notes.End()
	return exitStatus(err)
}

// rootCommand is the program's tree of commands; show takes the value of --color.
func (a *app) rootCommand(show func(cmd *cobra.Command, color string) error) *cobra.Command {
	root := &cobra.Command{
		Use:   "ibweave-papers COMMAND",
		Short: "measure the figures of papers again on the tables of ibweave",
		Long: `ibweave-papers measures the figures of papers again, with the simulators of ibweave
and on the tables that it makes, and compiles schedules for multicast in software.`,
		Example: `  ibweave-papers reproduce
  ibweave-papers reproduce zhou2010 -o figures`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cli.FindingsNote: "a schedule with errors, which is not written without --force; or the method does not support this fabric"},
		Args:          a.maxArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("a command is needed: %s", strings.Join(commandNames(cmd), ", "))
		},
	}
	level, format, color := "warn", "console", "auto"
	flags := root.PersistentFlags()
	cli.WordFlag(flags, &level, "log-level", "log to standard error from this `LEVEL` on: debug, info, warn, error", "debug", "info", "warn", "error")
	cli.WordFlag(flags, &format, "log-format", "`FORM` of the log, console or json", "console", "json")
	cli.WordFlag(flags, &color, "color", "`WHEN` to colour verdicts and severities: auto, on a terminal unless NO_COLOR is set; always; or never", "auto", "always", "never")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		a.command = cmd.CommandPath()
		if err := show(cmd, color); err != nil {
			return err
		}
		if a.log, err = cli.OpenLog(a.screen, level, format); err != nil {
			return err
		}
		return errors.Join(cli.WrongValues(cmd)...)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.command = cmd.CommandPath()
		return cli.FlagError(cmd, err)
	})
	man := cli.ManCommand(root, a.maxArgs(0), a.writeOutput)
	man.Long = `Write a page for each command into a directory: manual pages, to be read with
man -l FILE, or Markdown, as in docs/reference/papers.`
	man.Example = "  ibweave-papers man -o man"
	root.AddCommand(a.reproduceCommand(), a.modelCommand(), a.scheduleCommand(), man, cli.VersionCommand(a.stdout, "ibweave-papers", a.maxArgs(0)))
	root.InitDefaultHelpCmd()
	root.SetOut(a.exact)
	root.InitDefaultCompletionCmd() // which asks for the output now
	help, _, _ := root.Find([]string{"help"})
	help.Short, help.Long, help.Example = "print the help text of a command", "Print what COMMAND --help prints.", "  ibweave-papers help reproduce"
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = io.WriteString(cmd.OutOrStdout(), cli.Help(cmd)) // a.exact has the error
	})
	cli.Walk(root, func(c *cobra.Command) {
		if body := c.RunE; body != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				a.running = true
				notes, err := cli.CheckScopes(cmd)
				if err != nil {
					return err
				}
				for _, note := range notes {
					fmt.Fprintf(a.stderr, "ibweave-papers: %s\n", note)
				}
				return body(cmd, args)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if v, ok := f.Value.(cli.Refusing); ok {
				if words, _ := v.Refused(); words != nil { // an error means that they are there already
					_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
				}
			}
		})
	})
	return root
}

// commandNames lists the commands of a program.
func commandNames(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// maxArgs refuses arguments behind the first n; the first one of the program is a command.
func (a *app) maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		a.command = cmd.CommandPath()
		if cmd.HasSubCommands() {
			names := commandNames(cmd)
			return usagef("%s has no %q: want one of %s%s", cmd.Name(), args[0], strings.Join(names, ", "), cli.Near(args[0], names))
		}
		return usagef("unexpected argument %q", args[n])
	}
}

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

func inputf(format string, args ...any) error { return open.NewError(fmt.Errorf(format, args...)) }

// exitStatus maps an error to the exit status. Errors of unknown type count as environment
// errors (4).
func exitStatus(err error) int {
	switch {
	case err == nil:
		return cli.Clean
	case errors.Is(err, context.Canceled):
		return cli.Environment
	case errors.Is(err, cli.ErrFindings), is[*lft.DomainError](err), is[*lan.DeadlockError](err):
		return cli.Findings
	case is[*cli.UsageError](err):
		return cli.Usage
	case is[*fabric.ParseError](err), is[*files.RefusedError](err), is[*open.Error](err):
		return cli.Input
	}
	return cli.Environment
}

// is returns whether an error in the chain of err has a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// report prints an error for people.
func (a *app) report(err error) {
	switch {
	case err == nil, errors.Is(err, cli.ErrFindings):
		return
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted; nothing was left half done")
	}
	for line := range strings.Lines(err.Error()) { // one for each flag that is wrong
		fmt.Fprintf(a.stderr, "ibweave-papers: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if exitStatus(err) == cli.Usage {
		fmt.Fprintf(a.stderr, "Try '%s --help'.\n", a.command)
	}
}

// writeOutput writes a whole file at once, or to standard output for "-".
func (a *app) writeOutput(name string, data []byte) error {
	write := func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
	if name == "-" {
		return write(a.exact)
	}
	return files.Write(name, write)
}

// oneStdin refuses names of which several are standard input.
func oneStdin(names ...string) error {
	if i := slices.Index(names, "-"); i >= 0 && slices.Contains(names[i+1:], "-") {
		return usagef("standard input (-) can be one file only")
	}
	return nil
}
