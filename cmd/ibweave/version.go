package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/internal/files"
)

// version is the release; the revision comes from the build.
const version = outdir.Version

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  a.noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "ibweave %s%s, %s\n", version, revision(), runtime.Version())
			return err
		},
	}
}

// revision is " (0123456789ab)" with the commit that was built, and
// "modified" if the tree was.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = ", modified"
			}
		}
	}
	if commit == "" {
		return ""
	}
	return " (" + commit + modified + ")"
}

// manCommand writes the manual pages.
func (a *app) manCommand(root *cobra.Command) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "write the manual pages",
		Long:  "Write a manual page for each command, to be read with man -l FILE.",
		Args:  a.noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			var err error
			walk(root, func(c *cobra.Command) {
				if err != nil || c != root && (!c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand()) {
					return
				}
				c.DisableAutoGenTag = true
				c.Long = manText(c.Long)
				if c.RunE != nil {
					c.Long += "\n\n" + manText("Exit status:\n"+exitHelp)
				}
				header := &doc.GenManHeader{Section: "1", Source: "ibweave " + version, Manual: "ibweave"}
				name := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
				err = files.Write(name, func(w io.Writer) error { return doc.GenMan(c, header, w) })
			})
			return err
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "man", "`DIR` to write to")
	return cmd
}

// manText makes Markdown of a help text: indented lines stay lines.
func manText(help string) string {
	var b strings.Builder
	before := false
	for line := range strings.Lines(help) {
		indented := strings.HasPrefix(line, "  ")
		if indented != before {
			b.WriteByte('\n')
		}
		if indented {
			b.WriteString("    ")
		}
		b.WriteString(line)
		before = indented
	}
	return b.String()
}
