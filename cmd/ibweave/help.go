package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// version is the release; the revision comes from the build.
const version = outdir.Version

// helpTexts has the help text of each command, by its name, with its examples below "Examples:".
//
//go:embed help/*.txt
var helpTexts embed.FS

// describe gives root and its commands their help texts.
// Tables of the program replace lines such as {engines}.
func describe(root *cobra.Command) {
	tables := strings.NewReplacer("{engines}\n", engineItems(), "{schemes}\n", schemeHelp(), "{forms}\n", formsText())
	for _, c := range append(root.Commands(), root) {
		if data, err := helpTexts.ReadFile("help/" + c.Name() + ".txt"); err == nil {
			long, examples, _ := strings.Cut(string(data), "\nExamples:\n\n")
			c.Long, c.Example = strings.TrimSuffix(tables.Replace(long), "\n"), strings.TrimSuffix(examples, "\n")
		}
	}
}

// engineItems lists the engines as items of a help text.
func engineItems() string {
	var b strings.Builder
	for i := range compile.Engines {
		e := &compile.Engines[i]
		name := strings.Join(append([]string{e.Name()}, e.Aliases...), ", ")
		fmt.Fprintf(&b, "  %s  %s. For %s. Guarantees: %s.", name, e.Summary, e.Domain, e.Promise())
		if len(e.Counterparts) > 0 {
			fmt.Fprintf(&b, " Stands for OpenSM's %s.", strings.Join(e.Counterparts, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// schemeHelp lists the multicast schemes.
func schemeHelp() string {
	var b strings.Builder
	for _, s := range compile.MulticastSchemes {
		fmt.Fprintf(&b, "  %-15s%s\n", s.Name, s.Summary)
	}
	return b.String()
}

// formsText is the table of forms as items of a help text.
func formsText() string {
	var b strings.Builder
	for _, kind := range dump.Kinds() {
		if kind == dump.HelpsOpenSM {
			continue
		}
		b.WriteString("\n" + string(kind) + ":\n")
		for _, form := range dump.Forms(kind) {
			info := form.Info()
			fmt.Fprintf(&b, "  %s  from %s", info.Name, strings.ReplaceAll(info.From, "`", ""))
			if info.Lacks != "" {
				b.WriteString("; lacks " + strings.ReplaceAll(info.Lacks, "`", ""))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// flagValues returns the values that a shell completes for flags which cli.WordFlag does not
// define: by flag, or by command and flag where commands differ.
func flagValues() map[string][]string {
	var engines []string
	for i := range compile.Engines {
		e := &compile.Engines[i]
		engines = slices.Concat(engines, []string{e.Name()}, e.Aliases, e.Counterparts)
	}
	rules := text.Each(policy.AllRules(), func(r verify.Rule) string { return r.Name })
	return map[string][]string{
		"engine": engines, "compare engines": engines, "sim engines": engines, "sim mcast": {"union", "updn-tree"}, "explain": rules,
		"lids": {"keep", "dense", "mesh"}, "color": {"auto", "always", "never"}, "log-level": {"debug", "info", "warn", "error"}, "log-format": {"console", "json"},
		"names":         {"site", "factory", "mixed"},
		"check copying": {"independent", "reserving", "lock-step", "wormhole"},
		"check format":  text.Each(report.Forms, func(f report.Form) string { return f.Name }),
	}
}

func completeValues(root *cobra.Command) {
	values := flagValues()
	cli.Walk(root, func(c *cobra.Command) {
		_, command, _ := strings.Cut(c.CommandPath(), " ")
		// Flags of gen KIND are those of gen.
		command, _, _ = strings.Cut(command, " ")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			list, ok := values[command+" "+f.Name]
			if !ok {
				list, ok = values[f.Name]
			}
			if v, is := f.Value.(cli.Refusing); is {
				if words, _ := v.Refused(); words != nil {
					list, ok = words, true
				}
			}
			if ok && f.Value.Type() != "bool" && c.Flags().Lookup(f.Name) == f {
				// It fails if a parent has registered one.
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
			}
		})
	})
}
