// Command ibweave-papers measures the figures of papers again, with the simulators and the
// tables of ibweave, and compiles the schedules of one of them.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/report"
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
		err = &failure{cli.Usage, err}
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
	var level, format, color string
	flags := root.PersistentFlags()
	flags.StringVar(&level, "log-level", "warn", "log to standard error from this `LEVEL` on: debug, info, warn, error")
	flags.StringVar(&format, "log-format", "console", "`FORM` of the log, console or json")
	flags.StringVar(&color, "color", "auto", "`WHEN` to colour verdicts and severities: auto, on a terminal unless NO_COLOR is set; always; or never")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		a.command = cmd.CommandPath()
		if err := show(cmd, color); err != nil {
			return err
		}
		a.log, err = cli.OpenLog(a.screen, level, format)
		return err
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.command = cmd.CommandPath()
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok && numbers[bad.GetFlag().Name] != "" {
			return wrongNumber(bad.GetFlag().Name, bad.GetValue())
		}
		return fmt.Errorf("%w%s", err, cli.NearFlag(cmd, err))
	})
	root.AddCommand(a.reproduceCommand(), a.modelCommand(), a.scheduleCommand(), a.manCommand(root), &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long:  "Print the version, the commit it was built from, and the version of Go.",
		Args:  a.maxArgs(0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "ibweave-papers %s%s, %s\n", outdir.Version, cli.Revision(), runtime.Version())
			return err
		},
	})
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
				return body(cmd, args)
			}
		}
	})
	complete(root, "log-level", "debug", "info", "warn", "error")
	complete(root, "log-format", "console", "json")
	complete(root, "color", "auto", "always", "never")
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

// numbers says what flags take that have a number.
var numbers = map[string]string{
	"classes":           "1 or 2",
	"cpus":              "1 or more, or 0 for all",
	"max-fan-out":       "1 or more",
	"negative-binomial": "1 to 100",
	"start":             "0 or more, or -1 to draw one",
	"seed":              "different numbers from 0 to 2^64-1, as in 1,2,3",
}

// wrongNumber is the error of a flag that does not take a value.
func wrongNumber(flag string, value any) error {
	return usagef("--%s %v: want %s", flag, value, numbers[flag])
}

// manCommand writes the manual pages, and the reference.
func (a *app) manCommand(root *cobra.Command) *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "write the manual pages",
		Long: `Write a page for each command into a directory: manual pages, to be read with
man -l FILE, or Markdown, as in docs/reference/papers.`,
		Example: "  ibweave-papers man -o man",
		Args:    a.maxArgs(0),
		RunE: func(*cobra.Command, []string) error {
			pages, err := cli.Pages(root, format)
			if err != nil {
				return &failure{cli.Usage, err}
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			for name, text := range pages {
				if err := a.writeOutput(filepath.Join(dir, name), []byte(text)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "man", "`DIR` to write to")
	cmd.Flags().StringVar(&format, "format", "man", "`FORM` of the pages: man or markdown")
	complete(cmd, "format", "man", "markdown")
	return cmd
}

// complete has shells complete the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag: found by every test
	}
}

// failure is an error with its exit status.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{cli.Usage, fmt.Errorf(format, args...)}
}

func inputf(format string, args ...any) error {
	return &failure{cli.Input, fmt.Errorf(format, args...)}
}

// errFindings ends a command that did its work and printed what it found.
var errFindings = errors.New("findings")

// exitStatus maps an error to the exit status. Errors of unknown type count as environment
// errors (4).
func exitStatus(err error) int {
	var (
		known   *failure
		parse   *fabric.ParseError
		refused *files.RefusedError
		input   *open.Error
		domain  *lft.DomainError
	)
	switch {
	case err == nil:
		return cli.Clean
	case errors.Is(err, context.Canceled):
		return cli.Environment
	case errors.Is(err, errFindings), errors.As(err, &domain):
		return cli.Findings
	case errors.As(err, &known):
		return known.status
	case errors.As(err, &parse), errors.As(err, &refused), errors.As(err, &input):
		return cli.Input
	}
	return cli.Environment
}

// report prints an error for people.
func (a *app) report(err error) {
	switch {
	case err == nil, errors.Is(err, errFindings):
		return
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted; nothing was left half done")
	}
	fmt.Fprintf(a.stderr, "ibweave-papers: %v\n", err)
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

// outputForm is the flag --format.
type outputForm struct {
	format string
	json   bool
}

func (o *outputForm) define(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&o.format, "format", "text", usage)
	complete(cmd, "format", "text", "json")
}

func (o *outputForm) parse() error {
	if o.json = o.format == "json"; !o.json && o.format != "text" {
		return usagef("--format %q: want text or json", o.format)
	}
	return nil
}

// print prints a document as JSON, or its text, which is written at once.
func (o *outputForm) print(w io.Writer, document any, text func(b *bytes.Buffer)) error {
	if o.json {
		return report.JSON(w, document)
	}
	var b bytes.Buffer
	text(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// idle is flags that have no effect, and why: wrong usage, or, with note set, a line on standard
// error, since the result is what was asked for.
type idle struct {
	flags, why string
	note       bool
}

// given says whether a flag was set to another value than its default, which asks for nothing.
func given(f *pflag.Flag) bool { return f.Changed && f.Value.String() != f.DefValue }

// refuseIdle looks for flags without effect that are given.
func (a *app) refuseIdle(flags *pflag.FlagSet, list []idle) error {
	for _, x := range list {
		for _, name := range strings.Fields(x.flags) {
			switch f := flags.Lookup(name); {
			case !given(f):
			case !x.note:
				return usagef("--%s has no effect %s", name, x.why)
			default:
				fmt.Fprintf(a.stderr, "ibweave-papers: --%s has no effect %s\n", name, x.why)
			}
		}
	}
	return nil
}

// oneStdin refuses names of which several are standard input.
func oneStdin(names ...string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return name != "-" })
	if len(names) > 1 {
		return usagef("standard input (-) can be one file only")
	}
	return nil
}
