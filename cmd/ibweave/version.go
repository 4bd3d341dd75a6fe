package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// version is the release; the revision comes from the build.
const version = outdir.Version

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long:  "Print the version, the commit it was built from, and the version of Go.",
		Args:  a.noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "ibweave %s%s, %s\n", version, cli.Revision(), runtime.Version())
			return err
		},
	}
}

// manCommand writes the manual pages, and the reference.
func (a *app) manCommand(root *cobra.Command) *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "write the manual pages",
		Long: `Write a page for each command and each help topic into a directory: manual
pages, to be read with man -l FILE, or Markdown, as in docs/reference.`,
		Example: `  ibweave man -o man
  man -l man/ibweave-compile.1
  ibweave man --format markdown -o reference`,
		Args: a.noArgs,
		RunE: func(*cobra.Command, []string) error {
			pages, err := cli.Pages(root, format)
			if err != nil {
				return &usageError{err}
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(pages)) {
				if err := a.writeOutput(filepath.Join(dir, name), []byte(pages[name])); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "man", "`DIR` to write to")
	cmd.Flags().StringVar(&format, "format", "man", "`FORM` of the pages: man or markdown")
	return cmd
}

// formsCommand is the help topic about the forms of text: the table of package dump.
func (a *app) formsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "forms",
		Short: "the forms of text that commands read",
		Long: `Files are recognized by their content, whatever their names: text of these forms,
also compressed with zstd or gzip, wherever a file of the kind is asked for, and in
folders and archives of dumps. Of several topologies in a folder, the first in this
table is taken. What a form lacks is left out of the fabric, or inferred as it says
here; check says what it cannot decide without it.
` + formsText(),
	}
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
