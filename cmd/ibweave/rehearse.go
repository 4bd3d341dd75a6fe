package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sminterface/rehearse"
)

func (a *app) rehearseCommand() *cobra.Command {
	var via, format string
	cmd := &cobra.Command{
		Use:   "rehearse DIR",
		Short: "load compiled tables with the real OpenSM on the real ibsim, and compare",
		Long: `Start ibsim with the fabric of DIR and OpenSM with its files, read the tables
back from the simulated switches, and compare entry by entry. DIR is what
compile wrote. Needs opensm, ibsim-utils and infiniband-diags.

Files carry unicast tables only. ibsim gives port p of a CA the port GUID
caguid+p, so OpenSM gets copies of guid2lid and of the comments of the tables
with these.`,
		Example: `  ibweave rehearse tables`,
		Args:    a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("rehearse needs a directory that compile wrote")
			}
			if via != "file" {
				return usagef("--via %q: want file", via)
			}
			if format != "text" && format != "json" {
				return usagef("--format %q: want text or json", format)
			}
			var in audit
			if err := in.resolve(args); err != nil {
				return err
			}
			f, tables, _, err := a.readTables(&in)
			if err != nil {
				return err
			}
			s := a.startStage("", 0)
			r, err := rehearse.Run(cmd.Context(), f, tables, rehearse.Options{Dir: args[0], Progress: func(name string) {
				s.end()
				s = a.startStage(name, 0)
				a.log.Info(name)
			}})
			s.end()
			if err != nil {
				return err
			}
			if format == "json" {
				err = report.JSON(a.stdout, r)
			} else {
				err = a.printRehearsal(r)
			}
			if err == nil && !r.Equal() {
				err = errFindings
			}
			return err
		},
	}
	cmd.Flags().StringVar(&via, "via", "file", "how OpenSM gets the tables: file")
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

// printRehearsal prints a report for people.
func (a *app) printRehearsal(r *rehearse.Report) error {
	var b bytes.Buffer
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s%s\n", name, fmt.Sprintf(format, args...))
	}
	n := func(n int) string { return report.Grouped(int64(n)) }
	up := "subnet up"
	if !r.SubnetUp {
		up = "subnet not up"
	}
	engine := r.Engine
	if engine == "" {
		engine = "none"
	}
	row("OpenSM", "%s, engine %s, %s, %s", r.OpenSM, engine, up, plural(r.NumErrors, "error", "errors"))
	row("switches", "%s of %s have our tables", n(r.EqualSwitches), n(r.Switches))
	row("entries", "%s compared, %s", n(r.Entries), plural(r.Differences, "difference", "differences"))
	row("LIDs", "%s with other LIDs than ours", plural(r.WrongLIDs, "port", "ports"))
	row("not carried", "multicast tables and SL-to-VL maps, which files do not hold")
	samples := func(title string, total, shown int, line func(int) string) {
		if total == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s:\n", title)
		for i := range shown {
			fmt.Fprintf(&b, "    %s\n", line(i))
		}
		if total > shown {
			fmt.Fprintf(&b, "    and %s more\n", n(total-shown))
		}
	}
	samples("Entries that differ", r.Differences, len(r.Samples), func(i int) string { return r.Samples[i].String() })
	samples("Ports with other LIDs", r.WrongLIDs, len(r.LIDSamples), func(i int) string { return r.LIDSamples[i].String() })
	samples("Switches that could not be read", r.Unread, len(r.UnreadSamples), func(i int) string {
		return fmt.Sprintf("%q (%s)", r.UnreadSamples[i].Name, r.UnreadSamples[i].GUID)
	})
	samples("OpenSM's errors", r.NumErrors, len(r.Errors), func(i int) string { return r.Errors[i] })
	samples("Notes", len(r.Notes), len(r.Notes), func(i int) string { return r.Notes[i] })
	verdict := "equal"
	if !r.Equal() {
		verdict = "different"
	}
	fmt.Fprintf(&b, "\nverdict      %s\n", verdict)
	_, err := a.stdout.Write(b.Bytes())
	return err
}
