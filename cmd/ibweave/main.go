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
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/rehearse"
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
			// Only for completion: cobra keeps these functions and all that they refer to.
			completeValues(root)
		}
		root.SetIn(stdin)
		return root
	}, &a.running, exitStatus, a.report)
}

func init() { cobra.EnableCommandSorting = false }

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "ibweave COMMAND",
		Short:         "compile an InfiniBand fabric into forwarding tables and prove them safe",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.maxArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("a command is needed: %s", strings.Join(kindNames(cmd), ", "))
		},
	}
	var level, format, color string
	flags := root.PersistentFlags()
	flags.StringVar(&level, "log-level", "warn", "log to standard error from this `LEVEL` on: debug, info, warn, error")
	flags.StringVar(&format, "log-format", "console", "`FORM` of the log, console or json")
	flags.StringVar(&color, "color", "auto", "`WHEN` to colour verdicts and severities: auto, on a terminal unless NO_COLOR is set; always; or never")
	a.Define(root, &level, &format, &color, func(cmd *cobra.Command) error {
		if cmd.Name() == "compile" {
			return nil // compile reports these with its other errors
		}
		return errors.Join(cli.WrongValues(cmd)...)
	})
	// Groups and commands are in the order of the help text.
	for _, g := range []struct {
		name     string
		commands []*cobra.Command
	}{
		{"Audit", []*cobra.Command{a.checkCommand(), a.compareCommand(), a.diffCommand(), a.pathCommand(), a.countersCommand(), a.railsCommand(), a.reportCommand()}},
		{"Route", []*cobra.Command{a.compileCommand(), a.rehearseCommand()}},
		{"Change", []*cobra.Command{a.whatifCommand(), a.drainCommand(), a.moveCommand(), a.driftCommand()}},
		{"Live", []*cobra.Command{a.discoverCommand(), a.pullCommand(), a.devicesCommand(), a.memberCommand("join"), a.memberCommand("leave")}},
		{"Simulate", []*cobra.Command{a.genCommand(), a.simCommand(), a.trafficCommand(), a.placeCommand()}},
		{"Export", []*cobra.Command{a.slurmCommand(), a.planCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.name, Title: g.name})
		for _, c := range g.commands {
			c.GroupID = g.name
			root.AddCommand(c)
		}
	}
	// forms is a help topic: the table of package dump.
	forms := &cobra.Command{Use: "forms", Short: "the forms of text that commands read"}
	root.AddCommand(cli.VersionCommand(a.stdout, "ibweave", a.maxArgs(0)), cli.ManCommand(root, a.maxArgs(0), a.WriteFile), forms, movedCommand("reproduce"), movedCommand("schedule"))
	describe(root)
	a.addCobraCommands(root)
	for _, c := range root.Commands() {
		c.Hidden = c.GroupID == ""
	}
	cli.Walk(root, func(c *cobra.Command) {
		if body := c.RunE; body != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				a.running = true
				if err := emptyName(cmd); err != nil {
					return err
				}
				if cmd.Name() != "compile" { // compile does this itself, once it knows the engine
					if err := a.sayNotes(cli.CheckScopes(cmd)); err != nil {
						return err
					}
					if err := a.readHostGroups(); err != nil {
						return err
					}
				}
				return body(cmd, args)
			}
		}
	})
	return root
}

// addCobraCommands adds cobra's commands help and completion, with our help texts.
func (a *app) addCobraCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd() // it captures the output that root has now
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE = a.maxArgs(0), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	help, _, _ := root.Find([]string{"help"})
	help.Short = "print the help text of a command"
	help.Long = "Print what COMMAND --help prints, or a topic such as forms."
	help.Example = "  ibweave help compile\n  ibweave help forms"
	help.Args = func(_ *cobra.Command, args []string) error {
		// command is the root if there is no such command.
		command, rest, _ := root.Find(args)
		if command.DisableFlagParsing {
			return command.RunE(command, nil)
		}
		return a.maxArgs(0)(command, rest)
	}
}

// movedCommand returns a hidden command whose error names the program that has it now.
func movedCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return cli.NewUsageError(movedError(name)) },
	}
}

// movedError is the name of a command that ibweave-papers has now.
type movedError string

// emptyName returns an error if a flag that names a file has an empty name, such as
// a script's unset variable: without the file the command would silently check less.
func emptyName(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if what, _ := pflag.UnquoteUsage(f); what == "FILE" && f.Value.Type() == "string" && f.Value.String() == "" {
			err = usagef("--%s \"\": want the name of a file", f.Name)
		}
	})
	return err
}

func (e movedError) Error() string {
	return fmt.Sprintf("%s is a command of ibweave-papers: ibweave-papers %s", string(e), string(e))
}

func exitStatus(err error) int {
	return cli.ExitStatus(err, cli.Is[*choice.RefusedError](err) || cli.Is[*rehearse.UnfitError](err) || cli.Is[*mesh.NotGridError](err) || isRefused(err),
		cli.Is[*policy.RootError](err))
}

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
