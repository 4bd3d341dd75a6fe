package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/state/open"
)

// app is one run of the program.
type app struct {
	cli.Output
	stdin          io.Reader
	stdout, stderr io.Writer // those of Output
	running        bool      // the command line made sense
	nameMap        nameMap
	kinds          string // of --kinds
	policyKinds    []fabric.KindRule
	hostGroups     hostGroups
	strict         bool            // --strict
	stdinRead      bool            // standard input can be read once
	interrupted    <-chan struct{} // closed by SIGINT and SIGTERM
}

func init() { cobra.EnableCommandSorting = false }

// rootCommand is the program's tree of commands.
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
			return nil // which says all that is wrong beside these
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
	forms := &cobra.Command{Use: "forms", Short: "the forms of text that commands read"} // a help topic: the table of package dump
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
				if cmd.Name() != "compile" { // which looks at the engine before
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

// addCobraCommands adds the commands help and completion of cobra, in our words.
func (a *app) addCobraCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd() // which asks for the output now
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE = a.maxArgs(0), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	help, _, _ := root.Find([]string{"help"})
	help.Short = "print the help text of a command"
	help.Long = "Print what COMMAND --help prints, or a topic such as forms."
	help.Example = "  ibweave help compile\n  ibweave help forms"
	help.Args = func(_ *cobra.Command, args []string) error {
		command, rest, _ := root.Find(args) // the root, not an error, where there is none
		if command.DisableFlagParsing {
			return command.RunE(command, nil)
		}
		return a.maxArgs(0)(command, rest)
	}
}

// movedCommand is a hidden command that says where it is now.
func movedCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return cli.NewUsageError(movedError(name)) },
	}
}

// maxArgs is cobra.MaximumNArgs, as wrong usage.
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

// emptyName is the error of a flag that names a file and was given an empty name, such as the
// unset variable of a script: without the file the command would look at less, without a word.
func emptyName(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if what, _ := pflag.UnquoteUsage(f); what == "FILE" && f.Value.Type() == "string" && f.Value.String() == "" {
			err = usagef("--%s \"\": want the name of a file", f.Name)
		}
	})
	return err
}

// topologyArg takes an argument as the topology, just as -t FILE.
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

// require makes flags mandatory.
func (a *app) require(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // there is no such flag: found by every test
		}
	}
}

// readInput reads a whole file, or standard input for "-", and undoes zstd, gzip or
// UTF-16.
func (a *app) readInput(name string) ([]byte, error) {
	return a.reader(new(audit)).Text(name)
}

// readRaw reads a whole file as it is, or standard input for "-". It ends when the program
// is interrupted: the writer of a FIFO may never come.
func (a *app) readRaw(name string) ([]byte, error) {
	from := a.stdin
	if name == "-" && a.stdinRead {
		return nil, cli.ErrOneStdin
	}
	a.stdinRead = a.stdinRead || name == "-"
	s := a.startStage("read " + name)
	defer s.End()
	var data []byte
	ended := make(chan error, 1)
	go func() {
		ended <- func() (err error) {
			if name != "-" {
				f, err := os.Open(name) // which waits for the writer of a FIFO
				if err != nil {
					return open.NewError(err)
				}
				defer f.Close()
				info, err := f.Stat()
				switch {
				case err != nil:
					return open.NewError(err)
				case info.IsDir():
					return inputf("%s is a directory, want a file", name)
				}
				s.Total.Store(info.Size())
				from = f
			}
			if data, err = files.ReadAll(name, from, open.Limit, &s.Done); err != nil {
				return open.NewError(err)
			}
			return nil
		}()
	}()
	select {
	case err := <-ended:
		return data, err
	case <-a.interrupted:
		return nil, context.Canceled
	}
}

// startStage shows a stage on standard error, see cli.StartStage.
func (a *app) startStage(name string) *cli.Stage { return cli.StartStage(a.Screen, name) }

// readTopology reads the fabric from a file, or from a run of ibdiagnet.
func (a *app) readTopology(name string, lenient bool) (*fabric.Fabric, error) {
	in := newAudit(lenient, false)
	in.Topology = name
	return a.reader(in).Fabric()
}

// strictFlag defines --strict, for commands with --lenient.
func (a *app) strictFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.strict, "strict", false, "refuse a topology with anything that its tool does not print, and impossible LIDs")
	cmd.MarkFlagsMutuallyExclusive("strict", "lenient")
}

// nameMap is the flag --node-name-map of the commands that read a fabric.
type nameMap struct {
	file  string // "" for none
	names map[fabric.GUID]string
}

func (a *app) nameFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.nameMap.file, "node-name-map", "", "call nodes by the names in `FILE`, a node-name map as of infiniband-diags or what ibnodes prints")
}

// kindFlag defines --kinds, for commands that count hosts.
func (a *app) kindFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.kinds, "kinds", "", "say what nodes are for, as `KIND=PATTERN,..`: host, aggregation, router, service or gateway, and a GUID or a name with * (docs/kinds.md)")
}

// named is a fabric with the names of --node-name-map and the kinds of the policy and of
// --kinds, which go by these.
func (a *app) named(f *fabric.Fabric) (*fabric.Fabric, error) {
	f, err := a.renamed(f)
	if err != nil || a.kinds == "" && a.policyKinds == nil {
		return f, err
	}
	rules := a.policyKinds
	if a.kinds != "" {
		more, err := fabric.ParseKindRules(a.kinds)
		if err != nil {
			return nil, usagef("--kinds: %w", err)
		}
		rules = slices.Concat(rules, more)
	}
	f, unused := f.WithKinds(rules)
	for _, r := range unused {
		fmt.Fprintf(a.stderr, "kinds: no channel adapter or router is called %q\n", r.Pattern)
	}
	return f, nil
}

// renamed is a fabric with the names of --node-name-map.
func (a *app) renamed(f *fabric.Fabric) (*fabric.Fabric, error) {
	m := &a.nameMap
	if m.file == "" {
		return f, nil
	}
	if m.names == nil {
		data, err := a.readInput(m.file)
		if err != nil {
			return nil, err
		}
		var problems []fabric.Problem
		if m.names, problems, err = topology.ParseNames(m.file, data); err != nil {
			return nil, err
		}
		for _, x := range capture.Findings(f, problems) {
			fmt.Fprintln(a.stderr, x.Message)
		}
	}
	return f.WithNames(m.names), nil
}

// dumpProblems prints what was odd in a topology or a dump.
func (a *app) dumpProblems(problems []fabric.Problem, all bool) {
	a.listProblems(len(problems), all, func(i int) string { return problems[i].String() })
}

// fewProblems is how many lines listProblems prints when not all are wanted.
const fewProblems = 10

// listProblems prints n lines to standard error: all of them where input was
// left out, else the first and how many more there are. A dump from a
// rehearsal on ibsim contradicts every port GUID of a real capture.
func (a *app) listProblems(n int, all bool, line func(int) string) {
	for i := range n {
		if i == fewProblems && n > fewProblems+1 && !all {
			fmt.Fprintf(a.stderr, "and %d more of these\n", n-i)
			return
		}
		fmt.Fprintln(a.stderr, line(i))
	}
}

// writeComplete writes a file, or to standard output for "-", when all of it is known.
func (a *app) writeComplete(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return a.WriteFile(name, b.Bytes())
}

// sayNotes prints the notes of cli.CheckScopes, of a command line that makes sense, or returns its error.
func (a *app) sayNotes(notes []string, err error) error {
	if err == nil {
		for _, note := range notes {
			fmt.Fprintf(a.stderr, "ibweave: %s\n", note)
		}
	}
	return err
}
