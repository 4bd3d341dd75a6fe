// Command ibweave-papers measures the figures of papers again, with the simulators and the
// tables of ibweave, and compiles the schedules of one of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
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
	cli.Output
	stdin          io.Reader
	stdout, stderr io.Writer // as in Output
	running        bool      // the command line is valid
}

// run is the whole program: it returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := cli.NewOutput(stdout, stderr)
	a := &app{Output: out, stdin: stdin, stdout: out.Stdout, stderr: out.Stderr}
	return out.Run(args, func(context.Context) *cobra.Command { return a.rootCommand() }, &a.running, exitStatus, a.report)
}

func (a *app) rootCommand() *cobra.Command {
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
	a.Define(root, &level, &format, &color, func(cmd *cobra.Command) error { return errors.Join(cli.WrongValues(cmd)...) })
	man := cli.ManCommand(root, a.maxArgs(0), a.WriteFile)
	man.Long = `Write a page for each command into a directory: manual pages, to be read with
man -l FILE, or Markdown, as in docs/reference/papers.`
	man.Example = "  ibweave-papers man -o man"
	root.AddCommand(a.reproduceCommand(), a.modelCommand(), a.scheduleCommand(), man, cli.VersionCommand(a.stdout, "ibweave-papers", a.maxArgs(0)))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd() // it captures the output that root has now
	help, _, _ := root.Find([]string{"help"})
	help.Short, help.Long, help.Example = "print the help text of a command", "Print what COMMAND --help prints.", "  ibweave-papers help reproduce"
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
				if words, _ := v.Refused(); words != nil { // a second registration fails
					_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
				}
			}
		})
	})
	return root
}

func commandNames(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// maxArgs refuses more than n arguments, as wrong usage.
func (a *app) maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		a.Command = cmd
		if cmd.HasSubCommands() {
			names := commandNames(cmd)
			return usagef("%s has no %q: want one of %s%s", cmd.Name(), args[0], strings.Join(names, ", "), cli.Near(args[0], names))
		}
		return usagef("unexpected argument %q", args[n])
	}
}

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

func inputf(format string, args ...any) error { return open.NewError(fmt.Errorf(format, args...)) }

func exitStatus(err error) int {
	return cli.ExitStatus(err, cli.Is[*lan.DeadlockError](err), false)
}

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
		fmt.Fprintf(a.stderr, "Try '%s --help'.\n", a.Command.CommandPath())
	}
}
